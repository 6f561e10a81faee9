"""A registration over stub workers, with the service that loads and unloads versions."""

from tests.kit.daemon import StubDaemon
from tests.kit.stub import StubEngine
from tsctl.daemon.extensions.residency import ResidencyExtension
from tsctl.daemon.extensions.residency.residency import Residency
from tsctl.daemon.extensions.residency.service import ResidencyService
from tsctl.daemon.server.kernel import connect


class ResidentDaemon(StubDaemon):
    """A registration with such a service, and no budget of memory."""

    def use(self, engine: StubEngine) -> None:
        super().use(engine)
        service = ResidencyService(self.registry, Residency(self.registrar.live, engine.clock, {}))
        service.extension = ResidencyExtension()
        connect(self.registrar, [service])
