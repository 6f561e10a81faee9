"""The optimisations of a model: its handler's defaults, and those asked for by name."""

from collections.abc import Iterable, Sequence

from tsctl.handlers.names import DEFAULT_ON_GPU, DEFAULT_OPTIMIZATIONS, NO_OPTIMIZATION, OPTIMIZATIONS
from tsctl.handlers.sdk.built_in import nearest

_OF_IMAGES = ("fast_images",)
_READS = {"handle", "preprocess", "prepare", "decode_row", "image_processing"}
_USES_MODEL = {
    "__init__", "handle", "initialize", "_load_pickled_model", "_load_torchscript_model", "inference", "get_insights",
    "explain_handle",
}  # fmt: skip
# What the first runs, the others do not reach: a model on integers has next to nothing left in floating point.
CLASHES = {"int8": ("bf16", "compile"), "onnxruntime": ("bf16", "int8", "compile")}


def chosen(asked: Sequence[str] | None, handler_class: type, *, on_gpu: bool = False) -> dict[str, bool]:
    """Return the optimisations for a handler.

    Args:
        asked: the names in the registration or the archive, None if neither names any. They are added to the handler's
            defaults, unless `none` is among them.
        on_gpu: where the model is; some defaults are for GPUs.

    Returns:
        Name → whether asked for by name, in the order of application.
    """
    names = asked or ()
    usual: tuple[str, ...] = ()
    if NO_OPTIMIZATION not in names:
        usual = defaults_of(handler_class)
        usual += DEFAULT_ON_GPU if usual and usual != _OF_IMAGES and on_gpu else ()
    return {name: name in names for name in OPTIMIZATIONS if name in names or name in usual}


def defaults_of(handler_class: type) -> tuple[str, ...]:
    """Return the default optimisations of a handler's class: for a subclass, those that touch nothing of its own."""
    usual, own = nearest(handler_class, DEFAULT_OPTIMIZATIONS) or ((), set())
    reads = bool(own & _READS)
    uses_model = bool(own & _USES_MODEL)  # it may keep references to parts that an optimisation replaces
    return tuple(name for name in usual if not (reads if name in _OF_IMAGES else uses_model))


def clash_of(wanted: Iterable[str]) -> str:
    """Return why optimisations exclude each other; empty if they do not."""
    names = set(wanted)
    for name, others in CLASHES.items():
        for other in others:
            if {name, other} <= names:
                return f"`{name}` replaces what `{other}` makes faster; drop one of them"
    return ""
