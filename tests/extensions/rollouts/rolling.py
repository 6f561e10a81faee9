"""Rollouts on a registration over stub workers."""

from types import SimpleNamespace
from typing import cast

from tests.kit.daemon import StubDaemon
from tests.kit.stub import StubEngine
from tsctl.daemon.extension import Kernel
from tsctl.daemon.extensions.rollouts import RolloutsExtension
from tsctl.daemon.extensions.rollouts.rollout import Rollout, parse_conditions
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.extensions.rollouts.service import RolloutsService
from tsctl.daemon.server.kernel import connect

ROLLOUT = Rollout(
    version="2.0", steps=(10.0, 100.0), every=3600.0, conditions=parse_conditions("", compare=False),
    before=(("1.0", 100.0),),
)  # fmt: skip


class RollingDaemon(StubDaemon):
    """A registration with the service of rollouts."""

    service: RolloutsService

    def use(self, engine: StubEngine) -> None:
        super().use(engine)
        noted = SimpleNamespace(events=self.registrar.events)
        parts = SimpleNamespace(registry=self.registry, registrar=self.registrar, clock=engine.clock, observation=noted)
        self.service = RolloutsService(cast(Kernel, parts))
        self.service.extension = RolloutsExtension()
        connect(self.registrar, [self.service])

    @property
    def rollouts(self) -> Rollouts:
        return self.service.rollouts
