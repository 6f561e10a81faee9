"""The optimisations of a model: its handler's defaults, and those asked for by name."""

from collections.abc import Iterable, Sequence

from tsctl.handlers.names import DEFAULT_ON_GPU, DEFAULT_OPTIMIZATIONS, NO_OPTIMIZATION, OPTIMIZATIONS

# A model on integers has next to nothing left in floating point for these to make faster.
CLASHES = {"int8": ("bf16", "compile")}


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
        usual = DEFAULT_OPTIMIZATIONS.get((handler_class.__module__, handler_class.__qualname__), ())
        usual += DEFAULT_ON_GPU if usual and on_gpu else ()
    return {name: name in names for name in OPTIMIZATIONS if name in names or name in usual}


def clash_of(wanted: Iterable[str]) -> str:
    """Return why optimisations exclude each other; empty if they do not."""
    names = set(wanted)
    for name, others in CLASHES.items():
        for other in others:
            if {name, other} <= names:
                return f"`{name}` replaces what `{other}` makes faster; drop one of them"
    return ""
