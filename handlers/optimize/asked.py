"""Which optimisations a model gets: those its handler has by default, and those that are asked for."""

from collections.abc import Sequence

from handlers.names import NO_OPTIMIZATION, OPTIMIZATIONS

# Built-in handler → what it gets unless somebody says otherwise. Only the very class: a subclass may
# keep things of the model that an optimisation replaces. Not the object detector: how many boxes it
# finds hangs on thresholds, so what rounding does to its answers has no measure.
DEFAULTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("handlers.defaults.image_classifier", "ImageClassifier"): ("fast_images", "fold", "channels_last"),
    ("handlers.defaults.image_segmenter", "ImageSegmenter"): ("fast_images", "fold", "channels_last"),
}


def chosen(asked: Sequence[str] | None, handler_class: type) -> dict[str, bool]:
    """Choose the optimisations for a handler.

    Args:
        asked: what the registration or the archive names, None if neither does. It is added to the
            handler's defaults, unless `none` is named too.

    Returns:
        Name → whether it was asked for by name, in the order in which they are applied.
    """
    names = asked or ()
    usual: tuple[str, ...] = ()
    if NO_OPTIMIZATION not in names:
        usual = DEFAULTS.get((handler_class.__module__, handler_class.__qualname__), ())
    return {name: name in names for name in OPTIMIZATIONS if name in names or name in usual}
