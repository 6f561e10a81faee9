"""One setting under the load, on the simulator's clock: the performance that each client would see.

A request's way costs time outside the model (measuring/overhead.py): `latency` seconds for each, and `cost` seconds of
the daemon and its client, which are serial. Half of that is on the way in, half on the way out.

Clients in a closed loop may stay in step for ever, or apart, depending on how they started. Here they start at once, as
after a pause: in step is the slower of the two.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from daemon.batching.policies.table import make_collector
from daemon.core.job import Caller
from daemon.tools.simulator.percentile import nearest_rank
from daemon.tools.simulator.world import SimulatedModel, World
from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.frontier import Point
from daemon.tools.tune.load import LoadPlan
from daemon.tools.tune.overlap import Overlap
from daemon.tools.tune.times import PlacementTimes

WARM_UP = 0.2  # of the requests of a run, discarded
RUNS = 4  # of a closed loop
AT_ONCE = 0.001  # seconds within which all clients start
FALLS_BEHIND = 0.97  # of the offered rate


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds of a request outside the model: per request, and serial."""

    latency: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Lengths:
    """Requests whose batches are padded to the longest.

    Attributes:
        recorded: bytes, from which each request's are drawn; at least one, none of them 0.
        measured: bytes of the request that batch times were measured with.
        grouped: batches are formed by length.
    """

    recorded: Sequence[int]
    measured: int
    grouped: bool


class Lane:
    """Half of the way: its cost is serial, and all of it takes longer beside a batch."""

    def __init__(self, way: Overhead, overlap: Overlap) -> None:
        self._cost, self._latency = way.cost / 2, way.latency / 2
        self._overlap = overlap
        self._free = 0.0

    def take(self, at: float) -> float:
        """Return when a request that arrives at `at` is through."""
        slower = self._overlap.slower
        start = max(self._free, at)
        self._free = start + self._cost * slower
        self.note(start)
        return self._free + self._latency * slower

    def note(self, start: float) -> None:
        """Record a request that goes through at this time, timed elsewhere."""
        self._overlap.way(start, self._cost + self._latency)


class Shared:
    """The simulator's batch times, including overlap (daemon.tools.simulator.world.Service)."""

    def __init__(self, overlap: Overlap) -> None:
        self.now: Callable[[], float] = lambda: 0.0
        self._overlap = overlap

    def seconds(self, size: float, busy: int, chance: random.Random) -> float:
        return self._overlap.batch(size, busy, chance, self.now())


class Clients:
    """The load's clients, and their measurements.

    Attributes:
        seen: requests as (time of the response, latency), in order of response.
    """

    def __init__(self, world: World, plan: LoadPlan, way: Overhead, overlap: Overlap) -> None:
        self.seen: list[tuple[float, float]] = []
        self._world = world
        self._plan = plan
        self._way = way
        self._in, self._out = Lane(way, overlap), Lane(way, overlap)

    def start(self) -> None:
        plan = self._plan
        if plan.clients:
            for _ in range(plan.clients):
                caller = Caller()
                self._at(self._world.random.uniform(0.0, AT_ONCE), partial(self._arrive, caller, self._again))
        else:
            self._next(0, 0.0)

    def _at(self, moment: float, call: Callable[[], None]) -> None:
        self._world.clock.later(max(0.0, moment - self._world.clock.now()), call)

    def _arrive(self, caller: Caller, then: Callable[[Caller, float], None]) -> None:
        sent = self._world.clock.now() - self._way.latency / 2 - self._way.cost / 2

        def answered() -> None:
            now = self._world.clock.now()
            received = self._out.take(now)
            self.seen.append((received, received - sent))
            then(caller, received)

        self._world.submit(caller, answered)

    def _again(self, caller: Caller, received: float) -> None:
        """Send the next request of a client that has its response."""
        turnarounds = self._plan.turnarounds
        if turnarounds is not None:
            arrival = self._world.clock.now() + turnarounds.draw(self._world.random)
            self._in.note(arrival - (self._way.cost + self._way.latency) / 2)  # the end of the drawn time
        else:
            arrival = self._in.take(received)
        self._at(arrival, lambda: self._arrive(caller, self._again))

    def _next(self, index: int, start: float) -> None:
        """Send the next of the open arrivals, each on its own connection."""
        plan = self._plan
        if plan.rate:
            moment = start + self._world.random.expovariate(plan.rate)
            following = moment
        elif index < len(plan.times):
            moment = plan.times[index] - plan.times[0]
            following = 0.0
        else:
            return

        def arrive() -> None:
            self._next(index + 1, following)
            self._arrive(Caller(), lambda caller, _: caller.close())

        self._at(moment, arrive)


@dataclass(slots=True)
class _Run:
    """The result of one run without warm-up: latencies, batch sizes, responses a second, whether it kept up."""

    latencies: list[float]
    sizes: Counter[int]
    throughput: float
    keeps_up: bool


def replay(
    setting: Candidate,
    times: PlacementTimes,
    plan: LoadPlan,
    way: Overhead,
    requests: int,
    lengths: Lengths | None = None,
) -> Point:
    """Run a setting under the load until so many requests are answered, or the recording ends."""
    count = RUNS if plan.clients > 1 else 1
    runs = [_run(setting, times, plan, way, requests // count, seed, lengths) for seed in range(1, count + 1)]
    latencies = sorted(latency for run in runs for latency in run.latencies)
    sizes = sum((run.sizes for run in runs), Counter[int]())
    return Point(
        setting,
        capacity=times.capacity(setting.batch_size),
        throughput=fmean(run.throughput for run in runs),
        p50=nearest_rank(latencies, 50),
        p99=nearest_rank(latencies, 99),
        mean_batch=sum(size * count for size, count in sizes.items()) / sizes.total(),
        keeps_up=all(run.keeps_up for run in runs),
    )


def _run(
    setting: Candidate,
    times: PlacementTimes,
    plan: LoadPlan,
    way: Overhead,
    requests: int,
    seed: int,
    lengths: Lengths | None,
) -> _Run:
    model = SimulatedModel(batch_size=setting.batch_size, max_delay=setting.max_delay, workers=setting.workers)
    if lengths is not None:
        model = replace(model, lengths=lengths.recorded, length=lengths.measured, group_by_length=lengths.grouped)
    overlap = Overlap(times, times.beside)
    service = Shared(overlap)
    world = World(model, partial(make_collector, setting.policy), seed, service=service, stepping=True)
    service.now = world.clock.now
    clients = Clients(world, plan, way, overlap)
    clients.start()
    world.run(requests)
    seen = clients.seen
    counted = seen[int(len(seen) * WARM_UP) :]
    offered = plan.offered
    if plan.times:  # of the replayed ones
        offered = (len(seen) - 1) / max(1e-9, plan.times[len(seen) - 1] - plan.times[0])
    return _Run(
        latencies=[latency for _, latency in counted],
        sizes=world.measured.sizes,
        throughput=_rate(counted),
        keeps_up=offered is None or _rate(seen) >= FALLS_BEHIND * offered,
    )


def _rate(seen: list[tuple[float, float]]) -> float:
    """Return the responses a second."""
    return (len(seen) - 1) / max(1e-9, seen[-1][0] - seen[0][0])
