"""A service of an extension that notes how it is called, on a registration over stub workers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tests.kit.daemon import StubDaemon
from tests.kit.stub import StubEngine
from tsctl.daemon.core.errors import Conflict
from tsctl.daemon.extension import Extension, Service
from tsctl.daemon.models.registry import Reservation
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.kernel import connect


class Noted(Extension):
    name = "noted"


class NotedService(Service):
    """The service.

    Attributes:
        kept: its part of the snapshot.
        restored: what it was given of the last one, and the names that were registered then.
        released, forgotten: how it was called.
    """

    extension = Noted()

    def __init__(self, daemon: StubDaemon) -> None:
        self.kept: Mapping[str, Any] | None = None
        self.restored: list[tuple[Any, list[str]]] = []
        self.released: list[tuple[str, str]] = []
        self.forgotten: list[str] = []
        self._daemon = daemon

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        return {**self.kept, "last": True} if last and self.kept is not None else self.kept

    def restore(self, kept: Any) -> None:
        self.restored.append((kept, self._daemon.names))
        if "reserved" in kept:
            for name, versions in kept["reserved"].items():
                self.reserve(name, versions)
        if "broken" in kept:
            raise ValueError(kept["broken"])

    def reserve(self, name: str, versions: tuple[str, ...]) -> None:
        refusal = partial(Conflict, name, "", f"{name} is reserved. End it.")
        self._daemon.registry.reservations[name] = Reservation(versions, refusal, self.release)

    async def release(self, model: ModelVersion, why: str) -> None:
        self.released.append((f"{model.name}/{model.version}", why))
        del self._daemon.registry.reservations[model.name]

    def forget(self, gone: Callable[[str], bool]) -> None:
        self.forgotten += filter(gone, ("m", "n"))


class NotedDaemon(StubDaemon):
    """A registration with such a service, of an extension `noted`."""

    service: NotedService

    def use(self, engine: StubEngine) -> None:
        super().use(engine)
        self.service = NotedService(self)
        connect(self.registrar, [self.service])
