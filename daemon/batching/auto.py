"""`auto`: waits only where waiting pays, and only then.

The contract: batching delays a job only while a worker is idle, at most once, and never longer than the
maximum delay.

A batch of n takes a + c·n, so a job that joins saves a. Waiting pays where arrivals hang together: with our own
replies, because the same clients come back (a closed loop), or with each other (bursts). Under independent arrivals it
never does. So a batch is held while the expected saving is larger than the expected cost:

    bursts       a·P(an arrival within x | silent so far) − (n + λ·l(n))·E[min(gap, x)]
    closed loop  a·P(each missing client back within x | elapsed) − E[min(the last one's return, x)]
"""

from daemon.batching.collector import Facts, Send, Wait, latest
from daemon.batching.learned.survival import Survival
from daemon.batching.learned.traffic import Traffic

LEAST_GAIN = 0.002  # seconds; timers step by a millisecond, so less cannot be won by waiting
LEAST_HOLD = 0.001  # seconds, a step of a timer; what pays only for less is not waited for
# Of the gain of bursts: the gaps between bursts are in the histogram too, so it expects too little within one.
# Three calls in 5 ms, every 300 ms, simulated: mean 11.6 ms at 1.0, 11.5 at 1.1, 11.4 at 1.2, 12.5 at 1.4.
OPTIMISM = 1.1


class Auto:
    """Args: `batch_size` at least 1; `max_delay` in seconds, at least 0; `traffic` as the dispatcher tells it."""

    name = "auto"

    def __init__(self, batch_size: int, max_delay: float, traffic: Traffic) -> None:
        self._batch_size = batch_size
        self._max_delay = max_delay
        self._traffic = traffic
        self._return_due = 0.0  # until when the last batch's clients are waited for
        self._seen = 0  # how many waited when it was last left to the input to bring more

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        waiting, traffic = facts.waiting, self._traffic
        times, callers = traffic.times, traffic.callers
        # 1. A whole batch.
        if waiting >= self._batch_size:
            return self._send(facts, "full")
        # 2. A job has been held for the maximum delay.
        due = (now if facts.held is None else facts.held) + self._max_delay
        if now >= due:
            return self._send(facts, "delay")
        # 3. No time is left, or nobody comes any more.
        if facts.stopping:
            return self._send(facts, "stopping")
        due = min(due, latest(facts, times))
        if now >= due:
            return self._send(facts, "deadline")
        # 4. All who come regularly are here. Connections count, not jobs: one may send several at once.
        if not callers.strangers:
            callers.forget_silent(now, traffic.turnarounds)
            if callers.present == callers.regulars and not callers.strangers:
                return self._send(facts, "nobody_left")
        # 5. Nothing is known yet: the first bursts are held, a newcomer's single request is not.
        if facts.idle > 1 and not times.spread:
            return self._send(facts, "split")  # several sizes at once: this is how a and c are learned
        if not times.known:
            company = callers.open > 1 or traffic.gap <= self._max_delay
            return Wait(due) if company else self._send(facts, "nobody_left")
        # 6. Too little can be won by a timer. But what has already been sent to us is read first, while it brings more:
        # eight clients of a handler that does nothing come in batches of 8, not 4, at 40 µs of CPU a request, not 50.
        if times.a < LEAST_GAIN:
            if traffic.missing and waiting > self._seen:
                self._seen = waiting
                return Wait(now)
            return self._send(facts, "no_gain")
        # 7. Hold while it pays.
        if now < self._return_due and traffic.missing:
            return Wait(min(due, self._return_due))  # each that comes back makes it pay the more
        hold = self._returning(waiting, now)
        if hold:
            self._return_due = now + hold
        else:
            hold = self._burst(waiting, now)
        return Wait(min(due, now + hold)) if hold else self._send(facts, "no_gain")

    def drained(self) -> None:
        self._return_due = 0.0
        self._seen = 0

    def _send(self, facts: Facts, reason: str) -> Send:
        self._return_due = 0.0
        self._seen = 0
        size, idle, times = self._batch_size, facts.idle, self._traffic.times
        count = min(facts.waiting, size)
        if idle > 1 and count > 1 and (not times.spread or times.c * count > 2 * times.a):
            return Send(min(facts.waiting, size * idle), "split", over=min(idle, facts.waiting))
        return Send(count, reason)

    def _burst(self, waiting: int, now: float) -> float:
        """Seconds to hold for the next arrival, 0.0 if it does not pay."""
        gaps, times = self._traffic.gaps, self._traffic.times
        cost = waiting + gaps.rate * times.of(waiting)  # jobs that a second of waiting delays
        return _best(gaps, now - self._traffic.last_arrival, 1, OPTIMISM * times.a / cost)

    def _returning(self, waiting: int, now: float) -> float:
        """Seconds to hold for the clients of the last batch, 0.0 if it does not pay."""
        traffic = self._traffic
        missing = min(traffic.missing, self._batch_size - waiting)
        if not missing:
            return 0.0
        return _best(traffic.turnarounds, now - traffic.last_return, missing, traffic.times.a)


def _best(law: Survival, elapsed: float, count: int, gain: float) -> float:
    """Find x that makes gain·P(all of `count` have come within x) − E[min(the last one's time, x)] largest.

    Args:
        law: of one of them; independent of each other.
        elapsed: seconds that all have been silent.
        gain: seconds.

    Returns:
        Seconds from now; 0.0 if nothing is better than not to wait.
    """
    left = law.after(elapsed)
    if left <= 0.0:
        return 0.0
    best, best_value, waited, come, at = 0.0, 0.0, 0.0, 0.0, elapsed
    for edge, above in law.later(elapsed + LEAST_HOLD):
        chance = (1.0 - above / left) ** count
        waited += (edge - at) * (1.0 - (come + chance) / 2)
        value = gain * chance - waited
        if value > best_value:
            best, best_value = edge - elapsed, value
        if waited >= gain:
            break
        come, at = chance, edge
    return best
