"""Wait until a condition on a model holds; the condition is checked after each change."""

import asyncio
from collections.abc import Callable

from tsctl.daemon.core.errors import OutOfResources, Stopping, WorkersFailed
from tsctl.daemon.models.archives.directories import Progress
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure

_IMPORT = ("ModuleNotFoundError", "ImportError")


async def all_ready(model: ModelVersion, wanted: int, progress: Progress) -> None:
    """Wait until a model has `wanted` ready workers, or fewer after a scale down meanwhile; report the progress.

    Raises:
        Stopping: the model was stopped meanwhile.
        WorkersFailed: a worker could not load the model; the message ends with the traceback.
        OutOfResources: a worker ran out of memory; the message ends with the traceback.
    """
    failure: LoadFailure | None = None

    def settled() -> bool:
        nonlocal failure
        progress("loading", model.pool.ready, model.pool.wanted)
        failure = failure or model.pool.failure  # kept: the pool may forget the failure when another worker is ready
        return model.stopping or failure is not None or model.pool.ready >= min(wanted, model.pool.wanted)

    await until(model, settled, None)
    if model.stopping:
        raise Stopping(f'Model "{model.name}" version {model.version} was stopped while it was loading.')
    if failure is None:
        return
    reason = failure.error + _requirements_remedy(model, failure)
    sentence = f"Failed to start workers for model {model.name} version: {model.version}: {reason}"
    last = model.pool.last_exit
    details = failure.traceback or ("\n".join(last.output) if last is not None else "")
    if details.strip() == failure.error:  # a sentence of ours, without frames
        details = ""
    kind = OutOfResources if failure.out_of_memory else WorkersFailed
    raise kind(f"{sentence}\n\n{details}" if details else sentence)


def _requirements_remedy(model: ModelVersion, failure: LoadFailure) -> str:
    """Return the end of the sentence on an import that fails where the archive's requirements are not installed."""
    file = model.source.manifest.requirements_file
    if file is None or model.source.python is not None or not failure.error.startswith(_IMPORT):
        return ""
    return (
        f". The archive's `{file}` is not installed: start the daemon with `--install-requirements`, or install what it"
        " lists beside tsctl"
    )


async def until(model: ModelVersion, condition: Callable[[], bool], timeout: float | None) -> None:
    """Wait until a condition on a model holds, or for `timeout` seconds; check after each change."""
    done = asyncio.get_running_loop().create_future()

    def look() -> None:
        if not done.done() and condition():
            done.set_result(None)

    model.listeners[look] = None
    try:
        look()
        await asyncio.wait_for(done, timeout)
    except TimeoutError:
        pass
    finally:
        model.listeners.pop(look, None)
