"""The batch size of a version for which nobody names one.

`fallback_batch_size` is the client's own default: clients that bring in a file send one, TorchServe's send none, and
then a batch stays one request. The fallback counts for handlers that are known to take batches:

    built in                                  the fallback
    typed, with a batch size of its own       that size
    typed, takes lists                        the fallback
    typed, takes single values                1: a batch would only be a loop
    any other                                 1

A typed handler is known when its first worker is ready. A batch size of the registration, `set`, the archive or the
`models` block always wins, but for a model whose file takes no more: its first dimension may be fixed.
"""

from tsctl.daemon.model_settings import MOST
from tsctl.daemon.models.settings import ModelSettings
from tsctl.handlers.names import BUILT_IN
from tsctl.handlers.wire import Declared

# Origins of a batch size, as describe shows them.
DEFAULT = "default"
OF_DECLARATION = "the handler's declaration"
OF_BUILT_IN = "default for built-in handlers"
OF_TYPED = "default for typed handlers"
OF_SINGLE = "default for handlers of single values"
OF_FILE = "all that the model's file takes"


def default_batch_size(fallback: int, handler: str, declared: Declared | None) -> tuple[int, str]:
    """Return the batch size and its origin, if nobody names one.

    Args:
        fallback: `fallback_batch_size`; 0 for none.
        handler: as in the manifest.
        declared: the inputs of a typed handler; None for any other, and while that is unknown.
    """
    if not fallback:
        return 1, DEFAULT
    if declared is not None and not declared.built_in:
        if declared.batch_size:
            return min(declared.batch_size, MOST), OF_DECLARATION
        return (fallback, OF_TYPED) if declared.batches else (1, OF_SINGLE)
    return (fallback, OF_BUILT_IN) if handler in BUILT_IN else (1, DEFAULT)


def with_default_batch_size(settings: ModelSettings, handler: str, declared: Declared | None) -> ModelSettings:
    """Return the settings with the default batch size, or the same object if there is nothing to change."""
    said = settings.origins.get("batch_size", DEFAULT)
    if not settings.fallback_batch_size or said not in (DEFAULT, OF_DECLARATION, OF_BUILT_IN, OF_TYPED, OF_SINGLE):
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
