"""The workers that a version asks for, and how they run requests: in whole batches, or row by row.

A version's mode is decided when it is loaded (`Load.mode`), and never changes:

    mode        a worker is sent               at the same time              answers come     states of its requests
    batch       up to batch_size requests      one batch, and one ahead      batch by batch   workers/inflight.py
    continuous  one request                    batch_size, see `places_of`   in any order     workers/rows/state.py
    async       one request                    queue_jobs                    in any order     workers/rows/state.py

The worker itself has the same states in each (workers/state.py), be it one process or several.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.marfile import Manifest
from tsctl.daemon.model_settings import MOST
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.names import BUILT_IN
from tsctl.handlers.wire import Declared, Isolation, Measurement, Mode

TYPED = 32  # of functions that take lists
WAITING = 32  # of coroutines that take single values
FIRST = 8  # of a size that nobody has said, before it is known that more pay, or where nothing learns that

# Origins of a batch size, as describe shows them.
DEFAULT = "default"
OF_DECLARATION = "the handler's declaration"
OF_BUILT_IN = "default for built-in handlers"
OF_TYPED = "default for typed handlers"
OF_WAITING = "default for coroutines"
OF_FIXED = "default for typed handlers with `fixed`"
OF_SINGLE = "default for handlers of single values"
OF_FILE = "all that the model's file takes"


def default_batch_size(fallback: int, handler: str, declared: Declared | None, policy: str) -> tuple[int, str]:
    """The batch size of a version for which nobody names one.

    The signature of a typed handler decides, whether it comes as a file, in an archive or by TorchServe's API:

        typed, with a batch size of its own       that size
        typed, takes lists                        32
        typed, coroutine of single values         32: the requests of a batch wait at the same time
        either of these, with `fixed`             8: each batch that is not full is held, however rarely more come
        typed, takes single values                1: a batch would only be a loop
        built in, or a subclass that leaves the   the client's fallback
        steps that see batches as they are
        any other                                 1, as in TorchServe

    `fallback_batch_size` is the client's own default for built-in handlers: clients that bring in a file send one,
    TorchServe's send none, and then a batch stays one request.

    A typed handler is known when its first worker is ready. A batch size of the registration, `set`, the archive or the
    `models` block always wins, but for a model whose file takes no more: its first dimension may be fixed.

    Args:
        fallback: `fallback_batch_size`; 0 for none.
        handler: as in the manifest.
        declared: the inputs of a typed handler; None for any other, and while that is unknown.
    """
    if declared is not None and not declared.built_in:
        if declared.batch_size:
            return min(declared.batch_size, MOST), OF_DECLARATION
        if policy == "fixed" and (declared.batches or declared.waits):
            return FIRST, OF_FIXED
        if declared.batches:
            return TYPED, OF_TYPED
        return (WAITING, OF_WAITING) if declared.waits else (1, OF_SINGLE)
    built_in = handler in BUILT_IN or (declared is not None and declared.batches)
    return (fallback, OF_BUILT_IN) if fallback and built_in else (1, DEFAULT)


def _with_default_batch_size(settings: ModelSettings, handler: str, declared: Declared | None) -> ModelSettings:
    """Return the settings with the default batch size, or the same object if there is nothing to change."""
    said = settings.origins.get("batch_size", DEFAULT if settings.fallback_batch_size else "")
    if said not in (DEFAULT, OF_DECLARATION, OF_BUILT_IN, OF_TYPED, OF_WAITING, OF_FIXED, OF_SINGLE):
        return settings
    size, origin = default_batch_size(settings.fallback_batch_size, handler, declared, settings.policy)
    if (settings.batch_size, said) == (size, origin):
        return settings
    return settings.changed({"batch_size": size}, origin)


def first_batch_size(settings: ModelSettings) -> int:
    """Return how many requests a batch has at most until more are known to pay; 0 for the batch size.

    What somebody has said counts at once, and of built-in handlers the fallback, to which their optimisations are made.
    """
    return FIRST if settings.origins.get("batch_size") == OF_TYPED else 0


def sized(settings: ModelSettings, handler: str, declared: Declared | None, most: int = 0) -> ModelSettings:
    """Return the settings with the default batch size, if nobody named one, but none that the model's file does not
    take; or the same object.

    Args:
        most: rows that the file takes at a time; 0 for any number.
    """
    settings = _with_default_batch_size(settings, handler, declared)
    if not most or settings.batch_size <= most:
        return settings
    return settings.changed({"batch_size": most}, OF_FILE)


def batch_size_text(settings: ModelSettings | None) -> str:
    """Return the batch size and its origin, for an event."""
    return "" if settings is None else f"batch size {settings.batch_size}, {settings.origins.get('batch_size')}"


def mode_of(settings: ModelSettings) -> Mode:
    """Return the mode that the settings ask for.

    Raises:
        InvalidModel: they ask for two.
    """
    if settings.continuous and settings.asynchronous:
        raise InvalidModel(
            "model-config.yaml: `continuousBatching` and `asyncCommunication` are both true; a handler is written for"
            " one of them. Remove the other."
        )
    return "continuous" if settings.continuous else "async" if settings.asynchronous else "batch"


def places_of(settings: ModelSettings, share: int) -> int:
    """Return how many requests a worker may run at the same time, where it runs them row by row.

    `continuous`: each call of the handler takes all of them, so the batch size, times `share` (`Dispatcher.share`).
    `async`: the handler makes its own batches, so as many as may wait in the queue; what waits here could as well wait
    there.
    """
    if settings.asynchronous:
        return int(settings.queue_jobs)
    return int(settings.batch_size * share)


def worker_spec(
    manifest: Manifest,
    directory: Path,
    settings: ModelSettings,
    *,
    in_place: bool,
    python: Path | None,
    log: OutputLog,
    measured: Callable[[Sequence[Measurement]], None],
    isolated: Callable[[Isolation], None],
    too_large: Callable[[int], None] = lambda rows: None,
) -> WorkerSpec:
    """Return the configuration of a version's workers; the arguments are those of `WorkerSpec` and of `Source`.

    Raises:
        InvalidModel: the settings ask for two modes, or contradict each other in the eyes of an extension.
    """
    mode = mode_of(settings)
    spec = WorkerSpec(
        model_name=manifest.model_name,
        model_version=manifest.model_version,
        model_dir=directory,
        handler=manifest.handler,
        manifest=manifest.raw,
        batch_size=settings.batch_size,
        startup_timeout=settings.startup_timeout,
        response_timeout=settings.response_timeout,
        retry=settings.retry,
        isolate=settings.isolate,
        devices=settings.devices,
        python=python,
        in_place=in_place,
        told=_told(settings),
        max_memory=settings.max_memory,
        cpus=settings.cpus,
        chosen_threads=settings.threads,
        mode=mode,
        rows=places_of(settings, 1),
        log=log,
        measured=measured,
        isolated=isolated,
        too_large=too_large,
    )
    for extension in _SPECIFYING:
        if has_setting(settings, extension.needs):
            spec = extension.specify(settings, spec)
    return spec


_SPECIFYING = [each for each in EXTENSIONS if "specify" in vars(type(each))]
_DEFAULTS = {row.name: row.default for row in MODEL_SETTINGS}


def has_setting(settings: ModelSettings, needs: str) -> bool:
    """Return whether a version has a value of this setting other than the default, or `needs` is empty."""
    return not needs or getattr(settings, needs) != _DEFAULTS[needs]


def _told(settings: ModelSettings) -> dict[str, Any]:
    """Return the values that the handler's side obeys, by their fields of the message to a worker."""
    said = {row: getattr(settings, row.name) for row in MODEL_SETTINGS if row.worker}
    return {row.worker: row.kind.show(value) for row, value in said.items() if value is not None}
