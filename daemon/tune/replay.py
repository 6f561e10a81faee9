"""One setting under the load, on the simulator's clock: what each client would see.

A request's way costs beside the model (measuring/way.py): `latency` seconds for each, and `cost` seconds of the
daemon and its client, which serve one after the other. Half of that is on the way in, half on the way out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from daemon.batching.policies import make_collector
from daemon.job import Caller
from daemon.simulate.world import Model, World
from daemon.tune.candidates import Setting
from daemon.tune.frontier import Point
from daemon.tune.load import Plan
from daemon.tune.times import BatchTimes

WARM_UP = 0.2  # of the requests; they do not count
FALLS_BEHIND = 0.97  # of the offered rate


@dataclass(frozen=True, slots=True)
class Way:
    """Seconds of a request outside the model: for each, and of one after the other."""

    latency: float = 0.0
    cost: float = 0.0


class Lane:
    """What serves one after the other, `cost` seconds each."""

    def __init__(self, cost: float) -> None:
        self._cost = cost
        self._free = 0.0

    def take(self, at: float) -> float:
        """Give when it is done with what comes at this moment."""
        self._free = max(self._free, at) + self._cost
        return self._free


class Clients:
    """The load's clients, and what they see.

    Attributes:
        seen: requests as (moment of the answer, latency), in the order they were answered.
    """

    def __init__(self, world: World, plan: Plan, way: Way) -> None:
        self.seen: list[tuple[float, float]] = []
        self._world = world
        self._plan = plan
        self._way = way
        self._in, self._out = Lane(way.cost / 2), Lane(way.cost / 2)

    def start(self) -> None:
        plan = self._plan
        if plan.clients:
            for _ in range(plan.clients):
                caller = Caller()
                self._at(self._world.random.uniform(0.0, 0.01), partial(self._arrive, caller, self._again))
        else:
            self._next(0, 0.0)

    def _at(self, moment: float, call: Callable[[], None]) -> None:
        self._world.clock.later(max(0.0, moment - self._world.clock.now()), call)

    def _arrive(self, caller: Caller, then: Callable[[Caller, float], None]) -> None:
        sent = self._world.clock.now() - self._way.latency / 2 - self._way.cost / 2

        def answered() -> None:
            now = self._world.clock.now()
            received = self._out.take(now) + self._way.latency / 2
            self.seen.append((received, received - sent))
            then(caller, received)

        self._world.submit(caller, answered)

    def _again(self, caller: Caller, received: float) -> None:
        """The next request of a client that has its answer."""
        turnarounds = self._plan.turnarounds
        if turnarounds is not None:
            arrival = self._world.clock.now() + turnarounds.draw(self._world.random)
        else:
            arrival = self._in.take(received + self._way.latency / 2)
        self._at(arrival, lambda: self._arrive(caller, self._again))

    def _next(self, index: int, start: float) -> None:
        """The next of the arrivals that wait for nobody; each on a connection of its own."""
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


def replay(setting: Setting, times: BatchTimes, plan: Plan, way: Way, requests: int, seed: int = 1) -> Point:
    """Run a setting under the load until so many requests are answered, or the recorded ones are over."""
    model = Model(batch_size=setting.batch_size, max_delay=setting.max_delay, workers=setting.workers)
    world = World(model, partial(make_collector, setting.policy), seed, service=times)
    clients = Clients(world, plan, way)
    clients.start()
    world.run(requests)
    seen = clients.seen[int(len(clients.seen) * WARM_UP) :]
    throughput = (len(seen) - 1) / max(1e-9, seen[-1][0] - seen[0][0])
    ordered = sorted(latency for _, latency in seen)
    offered = plan.offered
    if offered is not None and plan.times:
        offered = (len(clients.seen) - 1) / max(1e-9, plan.times[len(clients.seen) - 1] - plan.times[0])
    answered = (len(clients.seen) - 1) / max(1e-9, clients.seen[-1][0] - clients.seen[0][0])
    return Point(
        setting,
        capacity=times.capacity(setting.batch_size),
        throughput=throughput,
        p50=_percentile(ordered, 50),
        p99=_percentile(ordered, 99),
        mean_batch=sum(size * count for size, count in world.measured.sizes.items()) / world.measured.sizes.total(),
        keeps_up=offered is None or answered >= FALLS_BEHIND * offered,
    )


def _percentile(ordered: list[float], percent: int) -> float:
    """Nearest rank."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
