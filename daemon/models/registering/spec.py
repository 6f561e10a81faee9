"""The workers that a version asks for, and how they run requests: in whole batches, or row by row.

A version's mode is decided when it is loaded (`Load.mode`), and never changes:

    mode        a worker is sent               at the same time              answers come     states of its requests
    batch       up to batch_size requests      one batch, and one ahead      batch by batch   workers/inflight.py
    continuous  one request                    batch_size, see `places_of`   in any order     workers/rows/state.py
    async       one request                    queue_jobs                    in any order     workers/rows/state.py

The worker itself has the same states in each (workers/state.py), be it one process or several; so has a sequence
(extensions/sequences/table.py), which any mode may have.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.core.logs import OutputLog
from tsctl.daemon.marfile import Manifest
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.handlers.wire import Isolation, Measurement, Mode


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
    share: int = 1,
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
        rows=places_of(settings, share),
        log=log,
        measured=measured,
        isolated=isolated,
        too_large=too_large,
    )
    for extension in EXTENSIONS:
        spec = extension.specify(settings, spec)
    return spec


def _told(settings: ModelSettings) -> dict[str, Any]:
    """Return the values that the handler's side obeys, by their fields of the message to a worker."""
    said = {row: getattr(settings, row.name) for row in MODEL_SETTINGS if row.worker}
    return {row.worker: row.kind.show(value) for row, value in said.items() if value is not None}
