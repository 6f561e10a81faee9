"""The number of workers of one version: gathers the facts, asks the rule, and carries out its answer."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from statistics import fmean
from typing import NamedTuple

from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.extensions.scaling.facts import BatchModel, ScalingChange, ScalingDecision, ScalingFacts
from tsctl.daemon.extensions.scaling.rule import decide, is_quiet
from tsctl.daemon.workers.pool import Pool

MOST_COUNTED = 1000  # arrivals: enough for a rate that is known to some percent, and counted in microseconds
WINDOW = (5.0, 120.0)  # seconds, at least and at most …
BATCHES = 10.0  # … and so many full batches in between: of slow models, fewer seconds show nothing


def window_of(seconds: float) -> float:
    """Return how long to look back, where a full batch takes `seconds`."""
    return min(max(BATCHES * seconds, WINDOW[0]), WINDOW[1])


def recent_rate(trace: Sequence[float], now: float, window: float) -> tuple[float, int]:
    """Return the arrivals a second over a window, and how many were counted.

    Args:
        trace: times of arrivals, the oldest first.
    """
    count = 0
    for at in islice(reversed(trace), MOST_COUNTED):
        if at <= now - window:
            return count / window, count
        count += 1
    if count == MOST_COUNTED:
        return count / max(now - trace[-count], 1e-9), count
    return count / window, count


class WaitingObserved(NamedTuple):
    """The mean of the samples, its change in a second, and the seconds that they cover."""

    mean: float
    trend: float
    covered: float


class WaitingSamples:
    """How many requests waited beside busy workers, sampled at short intervals."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add_sample(self, waiting: int, now: float) -> None:
        self._samples.append((now, waiting))

    def clear(self) -> None:
        """Forget the samples: the number of workers has changed, and with it what waits."""
        self._samples.clear()

    def mean(self, now: float, window: float) -> WaitingObserved:
        """Return the observations within the window; zeros before half of a window."""
        samples = self._samples
        while samples and samples[0][0] < now - window:
            samples.popleft()
        covered = now - samples[0][0] if samples else 0.0
        if covered < window / 2.0:
            return WaitingObserved(0.0, 0.0, 0.0)
        values = [waiting for _, waiting in samples]
        half = len(values) // 2
        trend = (fmean(values[-half:]) - fmean(values[:half])) / (covered / 2.0)
        return WaitingObserved(fmean(values), trend, covered)


KEPT = 50  # changes: more than the longest quiet time lets pass within any that counts


class Autoscaler:
    """Scales one pool.

    Args:
        waiting: returns the number of requests that no worker has started.
        places: how many requests a worker runs on its own at the same time; 0 for batches.
        obstacle: returns why one more worker has no room, an empty text if it has, None while that is measured; asked
            only when one is wanted.
        choose: sets the number of workers; None for the pool's own `scale`.

    Attributes:
        decision: the latest one, None before the first.
        history: the latest changes, the oldest first.
        quiet_since: since when one worker less would have sufficed, None if not now.
    """

    def __init__(
        self,
        pool: Pool,
        traffic: Traffic,
        waiting: Callable[[], int],
        places: int = 0,
        *,
        obstacle: Callable[[Pool], str | None],
        choose: Callable[[int], None] | None = None,
    ) -> None:
        self.decision: ScalingDecision | None = None
        self.history: deque[ScalingChange] = deque(maxlen=KEPT)
        self.quiet_since: float | None = None
        self._pool = pool
        self._traffic = traffic
        self._waiting = waiting
        self._places = places
        self._obstacle = obstacle
        self._choose = choose or pool.scale
        self._samples = WaitingSamples()
        self._wanted = pool.wanted

    def __repr__(self) -> str:
        return f"<Autoscaler {self.decision} of {self._pool!r}>"

    def sample(self, now: float) -> None:
        """Note how many requests wait while every worker is busy; to be called a few times a second."""
        pool = self._pool
        if pool.wanted != self._wanted or pool.ready < pool.wanted:
            self._wanted = pool.wanted
            self._samples.clear()
        else:
            self._samples.add_sample(0 if pool.idle else self._waiting(), now)

    def step(self, target: float, least: int, most: int, now: float, *, stateful: bool = False) -> ScalingDecision:
        """Decide, and scale the pool.

        Args:
            target: seconds that requests may wait.
            least, most: the operator's range.
            stateful: workers keep the state of open sequences.
        """
        facts = self.facts(target, least, most, now, stateful=stateful)
        if not is_quiet(facts):
            self.quiet_since = None
        elif self.quiet_since is None:
            self.quiet_since = now
        facts = replace(facts, quiet_since=self.quiet_since)
        decision = decide(facts, now)
        if decision.workers > facts.wanted:
            obstacle = self._obstacle(self._pool)
            decision = decide(replace(facts, obstacle=obstacle or "", measuring=obstacle is None), now)
        self.decision = decision
        if decision.workers != facts.wanted:
            self.history.append(ScalingChange(now, facts.wanted, decision.workers, decision.reason))
            self.quiet_since = None
            self._samples.clear()
            self._choose(decision.workers)
            self._wanted = decision.workers
        return decision

    def facts(self, target: float, least: int, most: int, now: float, *, stateful: bool = False) -> ScalingFacts:
        """Return the facts for the rule; the arguments are those of `step`."""
        pool, traffic = self._pool, self._traffic
        times = traffic.times
        batches = BatchModel(
            per_batch=times.per_batch,
            per_job=times.per_job,
            size=1 if self._places else traffic.batch_size,
            places=self._places or 1,
            known=times.known,
        )
        window = window_of(batches.seconds(batches.size))
        rate, arrivals = recent_rate(traffic.trace, now, window)
        waiting, trend, observed = self._samples.mean(now, window)
        return ScalingFacts(
            target=target,
            least=least,
            most=most,
            wanted=pool.wanted,
            ready=pool.ready,
            failing=pool.given_up + pool.pausing,
            rate=rate,
            arrivals=arrivals,
            waiting=waiting,
            trend=trend,
            observed=observed,
            batches=batches,
            startup=max((worker.load_time for worker in pool.workers), default=0.0),
            history=tuple(self.history),
            stateful=stateful,
        )
