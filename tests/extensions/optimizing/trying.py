"""A daemon over stub workers whose trials a test decides."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.kit.archives import model_files, write_mar
from tests.kit.daemon import StubDaemon, until
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.extensions.optimizing.choice import TrialRow
from tsctl.daemon.extensions.optimizing.program import TrialFailed, TrialRows
from tsctl.daemon.extensions.optimizing.trial import Trial, TrialState
from tsctl.daemon.extensions.optimizing.trials import OptimizingService
from tsctl.daemon.models.version import ModelVersion

ROOMY = (1, 1 << 50)  # bytes of a worker, and those that are left


def row(name: str, gain: float, **facts: Any) -> TrialRow:
    return TrialRow(optimize=name, now=name == "default", gain=gain, per_second=50 * gain, **facts)


FASTER = [row("none", 0.8), row("default", 1.0), row("compile", 1.25)]
SLOWER = [row("none", 0.8), row("default", 1.0), row("compile", 0.9)]


class Bench(StubDaemon):
    """A daemon, and its trials; a trial ends when the test calls `end`.

    Attributes:
        orders: of the trials that have begun.
        broken_off: how many were cancelled.
    """

    def __init__(self, root: Path, **flags: str) -> None:
        super().__init__(root, **flags)
        self.orders: list[Mapping[str, Any]] = []
        self.broken_off = 0
        self.running = False
        self.room = ROOMY
        self.time = FakeClock(1e9)
        self.trials = OptimizingService(
            self.registry, self.registrar, self.config, self.time, self._run, lambda pool: self.room
        )  # fmt: skip
        self.registrar.factory.following = (("", self.trials.follow),)

    async def _run(
        self, order: Mapping[str, Any], body: bytes, environment: Mapping[str, str], progress: Callable[[str], None]
    ) -> TrialRows:
        self.orders.append(order)
        self.running = True
        self.outcome: asyncio.Future[TrialRows] = asyncio.get_running_loop().create_future()
        progress("loading with compile")
        try:
            return await self.outcome
        except asyncio.CancelledError:
            self.broken_off += 1
            raise
        finally:
            self.running = False

    async def serve(
        self, *, config: str = "optimize: auto\n", batches: int = 1, handler: str = "image_classifier"
    ) -> ModelVersion:
        """Register a model that has answered so many batches."""
        files = model_files(handler=handler, configFile="c.yaml") | {"c.yaml": config.encode()}
        write_mar(self.store / "m.mar", files)
        model = await self.register("m.mar")
        for _ in range(batches):
            model.metrics.inference_time.observe(1.0)
        return model

    async def come_back(self) -> None:
        """Restore the version of an earlier daemon, and let it answer a batch."""
        await self.start()
        await until(lambda: bool(self.model.pool.ready))
        self.model.metrics.inference_time.observe(1.0)

    @property
    def model(self) -> ModelVersion:
        return self.registry.find("m")

    @property
    def trial(self) -> Trial | None:
        """The trial of the model."""
        return self.trials.of(self.model)

    @property
    def orders_of_workers(self) -> list[list[str] | None]:
        """The optimisations that each worker was told to apply, in the order of their starts."""
        return [worker.spec.told.get("optimize") for worker in self.engine.workers]

    @property
    def state(self) -> TrialState:
        assert self.trial is not None
        return self.trial.state

    async def look(self) -> None:
        """Look at all versions a minute later, and wait until what was begun has ended, or a trial runs."""
        self.time.advance(60.0)
        self.trials.look()
        await until(lambda: self.trials.idle or self.running)

    async def begin(self) -> None:
        """Let a trial begin."""
        before = len(self.orders)
        self.trials.look()
        await until(lambda: len(self.orders) > before)

    async def end(self, outcome: list[TrialRow] | str) -> None:
        """End the trial, with rows or with a failure."""
        if isinstance(outcome, str):
            self.outcome.set_exception(TrialFailed(outcome))
        else:
            self.outcome.set_result(TrialRows(outcome))
        await until(lambda: self.trials.idle)

    @property
    def told(self) -> list[str]:
        """The kinds of the events about trials and replacements."""
        kinds = ("trial-started", "trial-ended", "trial-failed", "optimized", "replaced", "replacement-failed")
        return [event.kind for event in self.registrar.events.after(0, "m") if event.kind in kinds]

    @property
    def last_text(self) -> str:
        return self.registrar.events.after(0, "m")[-1].text
