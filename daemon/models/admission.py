"""The answer to a request for a version that has no ready worker, unless the request waits."""

from tsctl.daemon.core.errors import DaemonError, Loading, NoReadyWorker
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.workers.engine import LoadFailure


def no_worker_error(name: str, failure: LoadFailure | None, *, unloaded: bool) -> DaemonError:
    """Return the error of a version that has no worker now or soon.

    Args:
        unloaded: an operator unloaded the version.
    """
    sentence = f'Model "{name}" has no worker to serve inference request.'
    if failure is not None:
        return NoReadyWorker(f"{sentence} Its workers failed: {failure.error}")
    if unloaded:
        return NoReadyWorker(f"{sentence} An operator unloaded it: `tsctl load {name}` brings it back.")
    return NoReadyWorker(f"{sentence} Please use scale workers API to add workers.")


def refusal(
    name: str,
    state: ModelState,
    failure: LoadFailure | None,
    *,
    comes: bool,
    was_ready: bool,
    at_startup: bool,
    unloaded: bool,
) -> DaemonError | None:
    """Return why a request is refused, or None if it waits.

    It waits for a load on demand, for the replacement of a worker that had been ready, and where the daemon's start
    asked for the version.

    Args:
        comes: the version is loaded on demand, and not held.
        unloaded: as for `no_worker_error`.
    """
    if comes:
        return None
    if state is not ModelState.LOADING:
        return no_worker_error(name, failure, unloaded=unloaded)
    if was_ready or at_startup:
        return None
    return Loading(f'Model "{name}" is still loading: no worker is ready yet. Try again later.')
