"""Calls for models that are about to be registered: they wait, as HTTP's requests do (api/inference/held.py)."""

import asyncio

from daemon.core.errors import Loading, ModelNotFound, VersionNotFound
from daemon.models.registry import Registry
from daemon.models.version import ModelVersion


class AwaitedModels:
    """Finds models, and waits for those that are listed and not registered yet.

    Args:
        most: calls that may wait.
    """

    def __init__(self, registry: Registry, most: int) -> None:
        self._registry = registry
        self._most = most
        self._waiting: set[asyncio.Future[None]] = set()
        registry.listeners.append(self._look_again)

    async def find(self, name: str, version: str | None) -> ModelVersion:
        """Return a version, or the default one.

        Raises:
            ModelNotFound: no model has this name, or will have it soon.
            VersionNotFound: the model has no such version.
            NoReadyWorker: the model could not be registered at the start.
            Loading: too many calls wait already.
        """
        while True:
            try:
                return self._registry.find(name, version)
            except (ModelNotFound, VersionNotFound):
                if not self._registry.expects(name):
                    raise
            if len(self._waiting) >= self._most:
                raise Loading(f'Model "{name}" is being registered. Try again later.')
            settled = asyncio.get_running_loop().create_future()
            self._waiting.add(settled)
            try:
                await settled
            finally:
                self._waiting.discard(settled)

    def _look_again(self) -> None:
        for each in self._waiting:
            if not each.done():
                each.set_result(None)
