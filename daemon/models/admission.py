"""The answer to a request for a version that has no ready worker, unless the request waits."""

import math
from collections.abc import Callable
from typing import Protocol

from tsctl.daemon.core.errors import DaemonError, LoadingFirst, NoReadyWorker, Stopping
from tsctl.daemon.models.presence import Presence
from tsctl.daemon.models.reporting.model_state import ModelState
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import ModelSettings
from tsctl.daemon.workers.pool import Pool


class FirstLoads:
    """The listener of those who wait for the first workers of versions, until one of these has changed.

    Args:
        call: made when a version's workers have changed.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._of_versions: list[dict[Callable[[], None], None]] = []

    def listen(self, error: LoadingFirst) -> None:
        """Listen to the version that is loading."""
        error.listeners[self._call] = None
        self._of_versions.append(error.listeners)

    def let_go(self) -> None:
        for listeners in self._of_versions:
            listeners.pop(self._call, None)
        self._of_versions.clear()


class AskedVersion(Protocol):
    """A version, as far as the answer depends on it."""

    name: str
    version: str
    request: Registration
    presence: Presence
    pool: Pool
    was_ready: bool
    settings: ModelSettings
    listeners: dict[Callable[[], None], None]

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

    It waits where a request brings the workers, and while workers load: the first ones, or those that replace others.

    Raises:
        NoReadyWorker: no worker is ready, and none is loading.
    """
    if not model.presence.comes and model.state is not ModelState.LOADING:
        raise no_worker_error(model)
    model.presence.ask()


def check_first_load(model: AskedVersion) -> None:
    """Check that a request may be read: a worker has loaded the version, or none is about to.

    How a body is read depends on the handler, which the first worker tells.

    Raises:
        LoadingFirst: the first worker is loading.
    """
    if not (model.was_ready or model.presence.comes) and model.state is ModelState.LOADING:
        limits = [each for each in (model.settings.client_timeout, model.settings.queue_timeout) if each]
        raise LoadingFirst(model.name, min(limits, default=math.inf), model.listeners)
