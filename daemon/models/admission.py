"""The answer to a request for a version that has no ready worker, unless the request waits."""

from typing import Protocol

from tsctl.daemon.core.errors import DaemonError, Loading, NoReadyWorker, Stopping
from tsctl.daemon.models.presence import Presence
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.request import Registration
from tsctl.daemon.workers.pool import Pool


class AskedVersion(Protocol):
    """A version, as far as the answer depends on it."""

    name: str
    version: str
    request: Registration
    presence: Presence
    pool: Pool
    was_ready: bool
    at_startup: bool

    @property
    def state(self) -> ModelState: ...


def stopping_error(model: AskedVersion) -> Stopping:
    """Return the error of a version that is going away."""
    return Stopping(f'Model "{model.name}" version {model.version} is being stopped.')


def no_worker_error(model: AskedVersion) -> DaemonError:
    """Return the error of a version that has no worker now or soon."""
    sentence = f'Model "{model.name}" has no worker to serve inference request.'
    if model.pool.failure is not None:
        return NoReadyWorker(f"{sentence} Its workers failed: {model.pool.failure.error}")
    if model.request.held:
        return NoReadyWorker(f"{sentence} An operator unloaded it: `tsctl load {model.name}` brings it back.")
    return NoReadyWorker(f"{sentence} Please use scale workers API to add workers.")


def check_for_workers(model: AskedVersion) -> None:
    """Check that a request may wait for a worker.

    It waits where a request brings the workers, for the replacement of a worker that had been ready, and where the
    daemon's start asked for the version.

    Raises:
        Loading: no worker has been ready yet.
        NoReadyWorker: no worker is ready, and none is being replaced.
    """
    if not model.presence.comes:
        if model.state is not ModelState.LOADING:
            raise no_worker_error(model)
        if not (model.was_ready or model.at_startup):
            raise Loading(f'Model "{model.name}" is still loading: no worker is ready yet. Try again later.')
    model.presence.ask()
