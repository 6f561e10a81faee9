"""Predict how long a request waits for a worker.

`expected_wait` is for a number of workers that is not there: M/D/k with Sakasegawa's approximation (1977), in which a
worker is a server and a batch is a customer. Two delays add up: until one of the busy workers ends its batch, and for
the batches before one's own where more than a batch waits, which is shorter by the size of a batch: full batches come
more evenly than requests (Allen and Cunneen, 1978). With batches of one request the sum is M/D/k itself.

`observed_wait` is for the workers that are there: Little's law, L = λW, from the requests that were seen waiting.
It holds for any arrivals, also for those of clients that wait for their answers, who never overload a server by much.
"""

import math

from tsctl.daemon.extensions.scaling.facts import BatchModel, ScalingFacts

HORIZON = (2.0, 20.0)  # seconds: overload counts for as long as a worker takes to start, within these limits
DOUBT = 2.0  # standard deviations of a Poisson count: a rate is above a capacity if it is so much above


def expected_wait(rate: float, batches: BatchModel, workers: int) -> float:
    """Return the mean seconds that a request waits for so many workers; inf if they cannot keep up.

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
