"""The rule: how many workers a version should have, from facts and the time; without a clock, and without effects.

    more    the predicted wait exceeds the target: one more, if there is room
    fewer   for a quiet time one worker less would have kept the wait below half the target: one less
    same    otherwise, and until the room is known; while workers start, the queue that has formed is no reason for
            still another one, only arrivals beyond what all of them can answer are

So that the number does not swing, a worker that is taken away and soon wanted back makes the next quiet time twice as
long, up to `LONGEST_QUIET`: under constant load the changes become rarer and rarer. A number that stays for four quiet
times makes it short again.
"""

import math
from collections.abc import Sequence

from tsctl.daemon.extensions.scaling.facts import BatchModel, DeviceMemory, ScalingChange, ScalingDecision, ScalingFacts
from tsctl.daemon.setting_values import size_text

HORIZON = (2.0, 20.0)  # seconds: overload counts for as long as a worker takes to start, within these limits
DOUBT = 2.0  # standard deviations of a Poisson count: a rate is above a capacity if it is so much above


def expected_wait(rate: float, batches: BatchModel, workers: int) -> float:
    """Predict how long a request waits for a worker.

    `expected_wait` is for a number of workers that is not there: M/D/k with Sakasegawa's approximation (1977), in which
    a worker is a server and a batch is a customer. Two delays add up: until one of the busy workers ends its batch, and
    for the batches before one's own where more than a batch waits, which is shorter by the size of a batch: full
    batches come more evenly than requests (Allen and Cunneen, 1978). With batches of one request the sum is M/D/k
    itself.

    `observed_wait` is for the workers that are there: Little's law, L = λW, from the requests that were seen waiting.
    It holds for any arrivals, also for those of clients that wait for their answers, who never overload a server by
    much.

    Return the mean seconds that a request waits for so many workers; inf if they cannot keep up.

    Args:
        rate: arrivals a second, at random (Poisson).
    """
    servers = workers * batches.places
    full = rate / batches.capacity(workers) if workers else math.inf
    if full >= 1.0:
        return math.inf
    size = usual_size(rate, batches, servers)
    seconds = batches.seconds(size)
    load = min(1.0, rate * seconds / (servers * size))
    exponent = math.sqrt(2.0 * (servers + 1)) - 1.0
    until_free = math.pow(load, exponent) * seconds
    behind_others = math.pow(full, exponent + 1.0) / (1.0 - full) * batches.seconds(batches.size) / batches.size
    return (until_free + behind_others) / (2.0 * servers)


def usual_size(rate: float, batches: BatchModel, servers: int) -> float:
    """Return the size of batches that hold the arrivals of the one before: n = λ·(a + c·n)/k, from 1 to the limit."""
    left = servers - rate * batches.per_job
    size = rate * batches.per_batch / left if left > 0.0 else math.inf
    return min(float(batches.size), max(1.0, size))


def observed_wait(facts: ScalingFacts, workers: int) -> float:
    """Return the seconds that requests wait by what was observed, with so many workers; 0.0 if none was.

    A queue that is being worked off counts with what would be left of it when another worker could have started.
    """
    waiting = facts.waiting + min(0.0, facts.trend) * horizon_of(facts)
    if waiting <= 0.0 or not facts.observed:
        return 0.0
    batches, capacity = facts.batches, facts.batches.capacity(workers)
    behind = waiting / capacity + batches.seconds(batches.size)  # the most that so many can take
    return min(waiting / facts.rate, behind) if facts.rate else behind


def growing_wait(facts: ScalingFacts, workers: int) -> float:
    """Return the seconds by which overload makes the wait longer until another worker could have started.

    The overload is that beyond doubt: of n arrivals, √n more or less are chance.
    """
    if not facts.arrivals:
        return 0.0
    capacity = facts.batches.capacity(workers)
    rate = facts.rate * (1.0 - DOUBT / math.sqrt(facts.arrivals))
    return max(0.0, rate / capacity - 1.0) * horizon_of(facts)


def horizon_of(facts: ScalingFacts) -> float:
    """Return the seconds until another worker could have started."""
    return min(max(facts.startup, HORIZON[0]), HORIZON[1])


QUIET = 60.0  # seconds until a worker is taken away
LONGEST_QUIET = 960.0
REGRET = 2.0  # quiet times: a worker wanted back so soon should have stayed
FORGIVEN = 4.0  # quiet times without a change, after which it is `QUIET` again
SPARE = 0.5  # of the target: what the predicted wait with one worker less has to be below
MOST_LOAD = 0.8  # of what the workers can answer, with one less
RESERVE = 0.1  # of the memory that a worker takes, for what it takes while it runs


def decide(facts: ScalingFacts, now: float) -> ScalingDecision:
    """Return how many workers there should be."""
    wanted = clamped(facts.wanted, facts.least, facts.most)
    if not facts.wanted:
        return ScalingDecision(0, "no workers are wanted")
    if wanted != facts.wanted:
        return ScalingDecision(wanted, f"the range is {max(1, facts.least)} to {facts.most}")
    if facts.failing:
        return ScalingDecision(wanted, "workers fail")
    if not facts.batches.known:
        return ScalingDecision(wanted, "no batch was measured yet")
    wait = predicted_wait(facts)
    if wait > facts.target:
        exceeds = f"predicted wait {milliseconds(wait)} > {milliseconds(facts.target)}"
        if wanted >= facts.most:
            return ScalingDecision(wanted, f"{exceeds}, but maxWorkers is {facts.most}", wait, blocked=True)
        if facts.obstacle:
            return ScalingDecision(wanted, f"{exceeds}, but {facts.obstacle}", wait, blocked=True)
        if facts.measuring:
            return ScalingDecision(wanted, f"{exceeds}; the free memory of GPUs is being read", wait)
        return ScalingDecision(wanted + 1, exceeds, wait)
    quiet = quiet_time(facts.history, now)
    if facts.quiet_since is not None and now - facts.quiet_since >= quiet and is_quiet(facts):
        fewer = expected_wait(facts.rate, facts.batches, wanted - 1)
        return ScalingDecision(
            wanted - 1, f"quiet for {quiet:.0f} s: predicted wait with one less {milliseconds(fewer)}", wait
        )
    return ScalingDecision(wanted, "enough", wait)


def memory_obstacle(devices: Sequence[DeviceMemory]) -> str:
    """Return why one more worker has no room on the devices that it would use, host or GPU; empty if it has.

    A worker is taken to need as much as the largest that is there; those that are still loading need theirs.
    """
    for each in devices:
        if round(each.takes * (1 + RESERVE)) * (1 + each.loading) > each.left:
            return f"a worker takes {size_text(each.takes)}, and {each.where} has {size_text(each.left)} left"
    return ""


def predicted_wait(facts: ScalingFacts) -> float:
    """Return the seconds that a request is predicted to wait with the wanted workers."""
    return observed_wait(facts, facts.wanted) + growing_wait(facts, facts.wanted)


def is_quiet(facts: ScalingFacts) -> bool:
    """Return whether one worker less would suffice, as far as the last seconds tell."""
    fewer = facts.wanted - 1
    if fewer < max(1, facts.least) or facts.stateful or facts.failing or not facts.observed:
        return False
    if not facts.batches.known or facts.rate > MOST_LOAD * facts.batches.capacity(fewer):
        return False
    most = SPARE * facts.target
    return expected_wait(facts.rate, facts.batches, fewer) <= most and observed_wait(facts, facts.wanted) <= most


def quiet_time(history: Sequence[ScalingChange], now: float) -> float:
    """Return how long it must be quiet until a worker is taken away."""
    quiet, before = QUIET, None
    for change in history:
        if before is not None:
            since = change.at - before.at
            if since > FORGIVEN * quiet:
                quiet = QUIET
            elif before.after < before.before and change.after > change.before and since <= REGRET * quiet:
                quiet = min(2.0 * quiet, LONGEST_QUIET)
        before = change
    return QUIET if before is None or now - before.at > FORGIVEN * quiet else quiet


def clamped(chosen: int, least: int, most: int) -> int:
    """Return the number of workers that there should be, within the operator's range.

    `Presence` combines the rule's choice with the rest (models/presence.py).

    Args:
        chosen: by the rule, or the number that there is; 0 while none should run, which is never the rule's choice.
        least, most: the operator's range. At least one worker stays also if it begins at 0: without any, requests are
            refused.
    """
    return min(max(chosen, 1, least), most) if chosen else 0


def milliseconds(seconds: float) -> str:
    """Return a time for people."""
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"
