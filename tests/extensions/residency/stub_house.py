"""Several versions with stub workers on one fake clock, and what loads and unloads them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.kit.build import make_model
from tests.kit.client import Client
from tests.kit.clock import FakeClock
from tests.kit.stub import StubEngine
from tests.kit.version import HEADER
from tsctl.daemon.core.job import Job, TimeBudget
from tsctl.daemon.extensions.residency.decision import Memory
from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.residency import Residency
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.models.version import ModelVersion


class WarmStubs:
    """Templates without processes: a version that has been loaded keeps one for as long as it is told.

    Attributes:
        told: what was kept for how long, in order.
    """

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.told: list[tuple[str, float]] = []

    def pid_of(self, name: str, version: str) -> int:
        return self.pids.get(name, 0)

    def keep(self, name: str, version: str, seconds: float) -> None:
        self.told.append((name, seconds))
        if not seconds:
            self.pids.pop(name, None)


class StubHouse:
    """A registry of versions on a fake clock.

    Args:
        sizes: name → bytes that the version takes while it is loaded.
        limits: device → bytes of all of them.
        load_time, batch_time: seconds.
        engine: by default a new one.
    """

    def __init__(
        self,
        sizes: Mapping[str, int] | None = None,
        limits: Memory | None = None,
        *,
        load_time: float = 2.0,
        batch_time: float = 1.0,
    ) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock, load_time, lambda size: batch_time)
        self.models: list[ModelVersion] = []
        self.sizes = dict(sizes or {})
        self.templates = WarmStubs()
        self.residency = Residency(self.models, self.clock, limits or {})
        self.residency.templates = self.templates
        self.residency.meter = self._measure
        self.client = Client(self.clock.now)

    def add(self, name: str = "m", *, start: bool = True, **settings: Any) -> ModelVersion:
        """Register a version; by default it is loaded on demand, and its workers start so."""
        usual: dict[str, Any] = {"loading": "on_demand", "keep_alive": 300.0}
        model = make_model(self.engine, self.clock, name=name, **usual | settings)
        self.residency.attach(model)
        residence_of(model).memory = {"host": self.sizes.get(name, 0)}
        self.models.append(model)
        if start:
            model.start()
        self.clock.settle()
        return model

    def ask(self, model: ModelVersion, name: str = "r", *, seconds: float | None = None) -> Job:
        """Let a request arrive, and what it sets off happen.

        Args:
            seconds: the time it may take.
        """
        budget = None if seconds is None else TimeBudget(seconds, self.clock.now(), HEADER)
        job = self.client.job(name, budget=budget)
        model.submit(job)
        self.clock.settle()
        return job

    @property
    def answers(self) -> list[str]:
        """The requests in the order of their answers, each with its status."""
        return [f"{name} {reply.status}" for name, reply in self.client.replies]

    @property
    def loaded(self) -> set[str]:
        """The names of the versions that have a ready worker."""
        return {model.name for model in self.models if residence_of(model).state is ResidenceState.LOADED}

    @property
    def resident(self) -> int:
        """The bytes of the versions that are loading, loaded or unloading."""
        present = (ResidenceState.LOADING, ResidenceState.LOADED, ResidenceState.UNLOADING)
        return sum(self.sizes.get(model.name, 0) for model in self.models if residence_of(model).state in present)

    def _measure(self, pids: Sequence[int]) -> Memory:
        names = {worker.spec.model_name for worker in self.engine.workers if worker.pid in pids}
        return {"host": sum(self.sizes.get(name, 0) for name in names)}
