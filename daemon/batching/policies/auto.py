"""`auto`: waits only where waiting pays, and only as long.

The contract: batching delays a job only while a worker is idle, at most once, and never longer than the
maximum delay; and where several workers serve strangers, until the next worker is idle (policies/split.py).

A batch of n takes a + c·n (l(b) = αb + β in Nexus, SOSP '19), so a job that joins saves a. Waiting pays where arrivals
are correlated: with our own replies, because the same clients come back (a closed loop), or with each other (bursts).
Under independent arrivals waiting never pays. So a batch is held while the expected saving exceeds the expected cost:

    bursts       a·P(an arrival within x | silent so far) − (n + λ·l(n))·E[min(gap, x)]
    closed loop  a·P(each missing client back within x | elapsed) − E[min(the last one's return, x)]

Where larger batches are no faster, or slower a request, smaller ones are made (traffic/best_size.py). Where the worker
waits for the daemon and the clients instead, these may be served in two halves (traffic/halves.py).
"""

import math
from typing import Final

from tsctl.daemon.batching.policies.collector import MARGIN, Facts, Send, Wait, latest
from tsctl.daemon.batching.policies.split import best_parts, parts_now, taken_now
from tsctl.daemon.batching.traffic.best_size import BestSize
from tsctl.daemon.batching.traffic.callers import Survival
from tsctl.daemon.batching.traffic.halves import Halves
from tsctl.daemon.batching.traffic.traffic import Traffic

LEAST_GAIN: Final = 0.002  # seconds; timers step by a millisecond, so less cannot be won by waiting
LEAST_HOLD: Final = 0.001  # seconds, a step of a timer; a hold that pays only for less is not started
# Factor on the gain of bursts: the gaps between bursts are in the histogram, too, so it underestimates within a burst.
# Three calls in 5 ms, every 300 ms, simulated: mean 11.6 ms at 1.0, 11.5 at 1.1, 11.4 at 1.2, 12.5 at 1.4.
OPTIMISM: Final = 1.1
SURELY: Final = 6.0  # standard deviations


class Auto:
    """The collector `auto`.

    Args:
        batch_size: at least 1.
        max_delay: seconds, at least 0.
        traffic: statistics of the version, kept up to date by the dispatcher.
        first: at most so many at first, and more while that pays; 0 for the batch size.
    """

    name = "auto"

    def __init__(self, batch_size: int, max_delay: float, traffic: Traffic, first: int = 0) -> None:
        self._max_delay = max_delay
        self._traffic = traffic
        self._halves = traffic.halves = Halves() if batch_size > 1 else None
        self._best = traffic.best = traffic.best or BestSize(batch_size, traffic.times, first)
        self._best.rest(resting=traffic.padded is not None)
        self._best.limit(batch_size, first)
        self._return_due = 0.0  # until when the last batch's clients are awaited
        self._seen = 0  # how many jobs waited when pending input was last read first
        self._parts = 0  # over how many workers the clients are split; 0 while the clients are unknown …
        self._share = batch_size  # … and how many of them share a batch
        self._clients = 0
        self._found = self._found_share = 0  # `_parts` and `_share`, as last computed …
        self._found_for = (0, 0, 0)  # … for so many clients, workers and changes of the learned times

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        waiting, traffic = facts.waiting, self._traffic
        times, callers = traffic.times, traffic.callers
        if facts.idle + traffic.busy > 1 or self._parts:
            self._plan(facts, now)
        # 1. As many as a batch has at most; or half of the clients of an only worker, which is sent the others ahead.
        enough = traffic.enough(waiting, facts.idle)
        if waiting >= enough:
            if self._best.trying:
                self.drained()
                return Send(enough, "probe")
            return self._send(facts, now, "full" if waiting >= self._best.size else "half")
        # 2. A job has been held for the maximum delay.
        due = (now if facts.held is None else facts.held) + self._max_delay
        if now >= due:
            return self._send(facts, now, "delay")
        # 3. No time is left, or no further job is accepted.
        if facts.stopping:
            return self._send(facts, now, "stopping")
        due = min(due, latest(facts, times))
        if now >= due:
            return self._send(facts, now, "deadline")
        # 4. Another busy worker would only slow the others down: join the clients that return from there.
        if self._parts and traffic.busy >= self._parts:
            return Wait(due)
        # 5. All regular clients are here, or as many of them as share a batch. Connections count, not
        # jobs: one may send several at once.
        if not callers.strangers:
            callers.forget_silent(now, traffic.turnarounds)
            if callers.present == callers.regulars and not callers.strangers:
                return self._send(facts, now, "nobody_left")
            if self._parts > traffic.busy and waiting >= self._share:
                return self._send(facts, now, "split")
        # 6. Nothing is known yet: the first bursts are held, a newcomer's single request is not.
        if facts.idle > 1 and not times.spread and not self._parts:
            return self._send(facts, now, "split")  # several sizes at once: this is how a and c are learned
        if not times.known:
            company = callers.open > 1 or traffic.gap <= self._max_delay
            return Wait(due) if company else self._send(facts, now, "nobody_left")
        # 7. Too little can be won by a timer. But pending input is read first, while that brings more jobs: eight
        # clients of a handler that does nothing come in batches of 8, not 4, at 40 µs of CPU a request, not 50.
        if times.per_batch < (LEAST_HOLD if self._parts else LEAST_GAIN):
            if traffic.missing and waiting > self._seen:
                self._seen = waiting
                return Wait(now)
            return self._send(facts, now, "no_gain")
        # 8. Hold while holding pays.
        missing = self._missing()
        if now < self._return_due and missing:
            return Wait(min(due, self._return_due))  # each client that returns increases the gain
        hold = self._returning(missing, min(self._share, self._best.size) - waiting, now)
        if hold:
            self._return_due = now + hold
        else:
            hold = self._burst(waiting, now)
        return Wait(min(due, now + hold)) if hold else self._send(facts, now, "no_gain")

    def drained(self) -> None:
        self._return_due = 0.0
        self._seen = 0

    def _send(self, facts: Facts, now: float, reason: str) -> Send:
        self._return_due = 0.0
        self._seen = 0
        waiting, size = facts.waiting, self._best.size
        if self._parts:
            room = min(facts.idle, self._parts - self._traffic.busy)
            if room > 0:
                share = size if reason == "deadline" else self._share  # jobs at their deadline are not left behind
                if reason == "nobody_left":
                    over = min(room, -(-waiting * self._parts // self._clients))
                else:
                    over = min(room, max(1, waiting // share))
                count = min(waiting, share * over)
                return Send(count, reason if over == 1 and count == waiting else "split", over)
            if waiting < self._share:
                self._traffic.together.missed(self._parts, self._share)
            return Send(min(waiting, size), reason)
        count = min(waiting, size if self._halves is None or reason != "half" else self._halves.share)
        if count == 1:
            return Send(count, reason)
        traffic = self._traffic
        if reason == "full" and facts.idle + traffic.busy < 2 and not traffic.callers.strangers:
            count = min(count, self._best.even(max(waiting, traffic.callers.regulars)))
        if facts.idle > 1:
            over = facts.idle
            if traffic.times.spread:
                over = parts_now(traffic.together, count, facts.idle, traffic.busy, traffic.gaps.rate)
            if over > 1:
                return Send(min(waiting, size * over), "split", over=min(over, waiting))
        # Who is left behind waits for another worker's batch, too.
        elif traffic.busy and traffic.times.spread and facts.deadline - now >= MARGIN * traffic.times.of(count):
            workers = 1 + traffic.busy
            arriving = traffic.gaps.rate * traffic.times.mean / workers
            taken = taken_now(traffic.together, waiting, size, workers, arriving)
            if taken < count:
                return Send(taken, "split")
        return Send(count, reason)

    def _plan(self, facts: Facts, now: float) -> None:
        """Choose over how many workers the clients are split, if they are known and there are several workers."""
        traffic = self._traffic
        callers, workers = traffic.callers, facts.idle + traffic.busy
        self._parts, self._share = 0, self._best.size
        self._best.share = self._best.most
        if workers > 1 and self._halves is not None:
            self._halves.forget()
        if workers < 2 or callers.strangers or not traffic.times.known:
            return
        callers.forget_silent(now, traffic.turnarounds)
        if callers.strangers:
            return
        clients = max(callers.regulars, facts.waiting + traffic.running)
        together = traffic.together
        found_for = (clients, workers, together.changes + self._best.changes)
        if self._found_for != found_for:  # seldom: the learned times seldom change
            self._found, self._found_share = best_parts(
                together, clients, workers, self._best.size, traffic.turnarounds
            )
            self._found_for = found_for
        self._clients = clients
        self._parts, self._share = self._found, self._found_share
        if self._share < self._best.size:
            self._best.share = self._share

    def _burst(self, waiting: int, now: float) -> float:
        """Return the seconds to hold for the next arrival, 0.0 if that does not pay."""
        gaps, times = self._traffic.gaps, self._traffic.times
        cost = waiting + gaps.rate * times.of(waiting)  # jobs that a second of waiting delays
        return _best(gaps, now - self._traffic.last_arrival, 1, OPTIMISM * times.per_batch / cost)

    def _missing(self) -> int:
        """Return how many clients are between an answer and their next request, of the last batch or of all known."""
        callers = self._traffic.callers
        return callers.regulars - callers.present if self._parts else self._traffic.missing

    def _returning(self, missing: int, room: int, now: float) -> float:
        """Return the seconds to hold for the first of the missing clients for whom there is room; 0.0 for none."""
        if missing <= 0 or room <= 0:
            return 0.0
        traffic = self._traffic
        gain, silent = traffic.times.per_batch, now - traffic.last_return
        return _best(traffic.turnarounds, silent, min(missing, room), gain, missing)


def _best(law: Survival, elapsed: float, count: int, gain: float, clients: int = 1) -> float:
    """Find x that maximises gain·P(`count` of the clients have come within x) − E[min(the last one's time, x)].

    Args:
        law: distribution of one client's time; the clients are independent of each other.
        elapsed: seconds that all have been silent.
        gain: seconds.
        clients: at least `count`.

    Returns:
        Seconds from now; 0.0 if not waiting is best.
    """
    left = law.after(elapsed)
    if left <= 0.0:
        return 0.0
    best, best_value, waited, come, at = 0.0, 0.0, 0.0, 0.0, elapsed
    for edge, above in law.later(elapsed + LEAST_HOLD):
        chance = at_least(count, clients, min(1.0, max(0.0, 1.0 - above / left)))
        waited += (edge - at) * (1.0 - (come + chance) / 2)
        value = gain * chance - waited
        if value > best_value:
            best, best_value = edge - elapsed, value
        if waited >= gain:
            break
        come, at = chance, edge
    return best


def at_least(count: int, clients: int, come: float) -> float:
    """Return the probability that so many of the clients have come, each with the probability `come`."""
    if count >= clients:
        return come**clients
    more, spread = clients * come - count, math.sqrt(clients * come * (1.0 - come))
    if abs(more) > SURELY * spread + 1.0:
        return 1.0 if more > 0.0 else 0.0
    if come > 0.5:  # of the two tails the one whose first term is not too small for a float
        return _at_most(clients - count, clients, 1.0 - come)
    return 1.0 - _at_most(count - 1, clients, come)


def _at_most(count: int, clients: int, come: float) -> float:
    term = total = (1.0 - come) ** clients
    for number in range(1, count + 1):
        term *= come / (1.0 - come) * (clients - number + 1) / number
        total += term
    return min(1.0, total)
