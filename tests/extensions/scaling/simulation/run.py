"""One run: a version under a scenario, with the rule or with a fixed number of workers."""

from dataclasses import dataclass, field, replace

from tests.extensions.scaling.simulation.traffic import Scenario
from tests.lab.percentile import nearest_rank
from tests.lab.policies.world import SimulatedModel, World
from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.extensions.scaling.autoscaler import Autoscaler
from tsctl.daemon.extensions.scaling.facts import ScalingChange
from tsctl.daemon.extensions.scaling.service import DECIDED, SAMPLED

MOST = 8  # workers
TARGET = 0.1  # seconds
# A batch of 4 takes 160 ms: 25 requests a second and worker. A worker needs five seconds to start.
MODEL = SimulatedModel(a=0.08, c=0.02, batch_size=4, max_delay=0.02, load_time=5.0)


def capacity_of(model: SimulatedModel) -> float:
    """Return the requests a second that one worker answers."""
    return model.batch_size / (model.a + model.c * model.batch_size)


@dataclass(slots=True)
class ScalingRun:
    """What a run has shown; times in seconds.

    Attributes:
        latencies: of the answered requests, ascending.
        worker_seconds: the workers that there should be, times their seconds.
        changes: of the number of workers.
        numbers: how many workers there were in each second.
    """

    latencies: list[float]
    worker_seconds: float = 0.0
    changes: list[ScalingChange] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def percentile(self, percent: float) -> float:
        return nearest_rank(self.latencies, percent)


def run(
    scenario: Scenario,
    workers: int | None = None,
    *,
    model: SimulatedModel = MODEL,
    seed: int = 1,
    target: float = TARGET,
    least: int = 1,
    most: int = MOST,
    room: int | None = None,
) -> ScalingRun:
    """Run a scenario.

    Args:
        workers: a fixed number; None for the rule.
        room: so many workers have room on the machine, by default all.
    """
    world = World(replace(model, workers=least if workers is None else workers), Auto, seed)
    scaler = Autoscaler(
        world.pool, world.traffic, lambda: world.queue.waiting + world.pool.unstarted,
        obstacle=lambda pool: "there is no room" if room is not None and pool.wanted >= room else "",
    )  # fmt: skip
    found = ScalingRun([])

    def look(count: int) -> None:
        now = world.clock.now()
        found.worker_seconds += world.pool.wanted * SAMPLED
        if workers is None:
            scaler.sample(now)
            if count % DECIDED == 0:
                before = world.pool.wanted
                decision = scaler.step(target, least, most, now)
                if decision.workers != before:
                    found.changes.append(ScalingChange(now, before, decision.workers, decision.reason))
        if count % DECIDED == 0:
            found.numbers.append(world.pool.wanted)
        world.clock.later(SAMPLED, lambda: look(count + 1))

    world.clock.later(SAMPLED, lambda: look(1))
    scenario.load.start(world)
    world.clock.advance(scenario.seconds)
    # Those that still wait have waited at least so long: without them, a number that is too small would look good.
    finished = world.measured.finished
    left = [world.clock.now() - job.arrived for job in world.queue.of_size(0)]
    found.latencies = sorted([latency for _, latency in finished] + left)
    return found
