"""The batch size of a version for which nobody names one.

The signature of a typed handler decides, whether it comes as a file, in an archive or by TorchServe's API:

    typed, with a batch size of its own       that size
    typed, takes lists                        8
    typed, coroutine of single values         32: the requests of a batch wait at the same time
    typed, takes single values                1: a batch would only be a loop
    built in, or a subclass that leaves the   the client's fallback
    steps that see batches as they are
    any other                                 1, as in TorchServe

`fallback_batch_size` is the client's own default for built-in handlers: clients that bring in a file send one,
TorchServe's send none, and then a batch stays one request.

A typed handler is known when its first worker is ready. A batch size of the registration, `set`, the archive or the
`models` block always wins, but for a model whose file takes no more: its first dimension may be fixed.
"""

from tsctl.daemon.model_settings import MOST
from tsctl.daemon.models.settings import ModelSettings
from tsctl.handlers.names import BUILT_IN
from tsctl.handlers.wire import Declared

TYPED = 8  # of functions that take lists
WAITING = 32  # of coroutines that take single values

# Origins of a batch size, as describe shows them.
DEFAULT = "default"
OF_DECLARATION = "the handler's declaration"
OF_BUILT_IN = "default for built-in handlers"
OF_TYPED = "default for typed handlers"
OF_WAITING = "default for coroutines"
OF_SINGLE = "default for handlers of single values"
OF_FILE = "all that the model's file takes"


def default_batch_size(fallback: int, handler: str, declared: Declared | None) -> tuple[int, str]:
    """Return the batch size and its origin, if nobody names one.

    Args:
        fallback: `fallback_batch_size`; 0 for none.
        handler: as in the manifest.
        declared: the inputs of a typed handler; None for any other, and while that is unknown.
    """
    if declared is not None and not declared.built_in:
        if declared.batch_size:
            return min(declared.batch_size, MOST), OF_DECLARATION
        if declared.batches:
            return TYPED, OF_TYPED
        return (WAITING, OF_WAITING) if declared.waits else (1, OF_SINGLE)
    built_in = handler in BUILT_IN or (declared is not None and declared.batches)
    return (fallback, OF_BUILT_IN) if fallback and built_in else (1, DEFAULT)


def with_default_batch_size(settings: ModelSettings, handler: str, declared: Declared | None) -> ModelSettings:
    """Return the settings with the default batch size, or the same object if there is nothing to change."""
    said = settings.origins.get("batch_size", DEFAULT if settings.fallback_batch_size else "")
    if said not in (DEFAULT, OF_DECLARATION, OF_BUILT_IN, OF_TYPED, OF_WAITING, OF_SINGLE):
        return settings
    size, origin = default_batch_size(settings.fallback_batch_size, handler, declared)
    if (settings.batch_size, said) == (size, origin):
        return settings
    return settings.changed({"batch_size": size}, origin)


def within_file(settings: ModelSettings, most: int) -> ModelSettings:
    """Return the settings with a batch size that the model's file takes, or the same object.

    Args:
        most: rows that the file takes at a time; 0 for any number.
    """
    if not most or settings.batch_size <= most:
        return settings
    return settings.changed({"batch_size": most}, OF_FILE)
