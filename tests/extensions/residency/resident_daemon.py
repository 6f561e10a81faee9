"""A registration over stub workers, with the service that loads and unloads versions."""

from types import SimpleNamespace
from typing import cast

from tests.kit.daemon import StubDaemon
from tsctl.daemon.extension import Kernel
from tsctl.daemon.extensions.residency import ResidencyExtension
from tsctl.daemon.extensions.residency.residency import WarmTemplates
from tsctl.daemon.extensions.residency.service import ResidencyService
from tsctl.daemon.server.kernel import connect
from tsctl.daemon.workers.stub import StubEngine


class ResidentDaemon(StubDaemon):
    """A registration with such a service, and no budget of memory."""

    templates: WarmTemplates | None = None  # without them nothing is measured

    def use(self, engine: StubEngine) -> None:
        super().use(engine)
        parts = SimpleNamespace(
            registry=self.registry, registrar=self.registrar, clock=engine.clock, templates=self.templates,
            config=SimpleNamespace(models_memory=None), gpus=SimpleNamespace(cards=()),
        )  # fmt: skip
        service = ResidencyService(cast(Kernel, parts))
        service.extension = ResidencyExtension()
        connect(self.registrar, [service])
