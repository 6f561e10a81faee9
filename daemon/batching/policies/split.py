"""How jobs are split over several workers: those of known clients, and those of strangers, whose next ones are unknown.

known clients    best_parts    as many batches at the same time as give the most answers a second
strangers        parts_now     several workers are idle: cut over them, over the last one only if it can be spared
                 taken_now     one worker is idle: it takes what wait, or leaves some to the next one
"""

from collections.abc import Iterator
from typing import Final

from tsctl.daemon.batching.traffic.callers import Survival
from tsctl.daemon.batching.traffic.times import MOST, Together

WORTH_IT: Final = 1.02  # times as fast: for less no further worker is used
ALIKE: Final = 1.08  # times as fast at best: between such numbers the way back decides; below it, shares are even
BUNCHED: Final = 1.3  # times as many as arrive for each worker during a batch; the best size is up to 2 times that
STEPS: Final = 4  # of a batch is left at a time, 1 / so much: the size need not be exact


def best_parts(together: Together, jobs: int, workers: int, batch_size: int, turnarounds: Survival) -> tuple[int, int]:
    """Choose over how many workers the clients are split, and how many share a batch.

    k simultaneous batches take the time learned for k busy workers (traffic/times.py): where workers share cores,
    splitting saves nothing, and where each has its own, splitting saves all but the fixed cost. While clients are
    between an answer and their next request, smaller batches of the others keep the workers busy: the clients are split
    into more shares than there are workers, which run them all in turn. A few numbers of shares are compared,
    uneven ones, of which some are answered a batch later, where the even split loses much on the way back.

    Jobs over `batch_size` wait for the next round.

    Args:
        jobs: at least 1.
        workers: present, busy or not; at least 1.
    """
    rates: dict[int, float] = {}
    for parts in _numbers(min(workers, jobs)):
        even = min(jobs / parts, batch_size)
        seconds = together.hoped(parts, even)
        rates[parts] = parts * even / seconds if seconds else 0.0
    fastest, most, away = max(rates.values()), 0.0, 1.0
    best = next(parts for parts, rate in rates.items() if rate * WORTH_IT >= fastest)
    share = min(batch_size, -(-jobs // best))
    back = turnarounds.typical
    if not back or back > together.expected(1, min(jobs, batch_size)):
        return best, share  # who takes longer than a batch is on no round with the others
    for parts in [parts for parts, rate in rates.items() if rate * ALIKE >= fastest]:
        for shares in sorted(each for each in {parts, parts + 1, 3 * parts // 2, 2 * parts} if each <= jobs):
            size = min(batch_size, -(-jobs // shares))
            # An even split is believed to be as fast as it can be until it was tried, which this plan does.
            seconds = together.hoped(parts, size) if shares == parts else together.expected(parts, size)
            cycle = seconds + back
            company = min(size * cycle / (2 * jobs), max(0.0, turnarounds.latest(size) - back))
            away = (cycle + company) / seconds if shares == parts and seconds else away
            if not seconds or (shares % parts and away < ALIKE):
                continue
            rate = min(parts * min(jobs / shares, size) / seconds, jobs / (cycle + company))
            if rate > most * WORTH_IT:
                best, share, most = parts, size, rate
    return best, share


def _numbers(most: int) -> Iterator[int]:
    """Yield the numbers of workers that are compared: all that can be told apart, then half as many again each time."""
    yield from range(1, min(most, MOST) + 1)
    number = MOST * 3 // 2
    while number < most:
        yield number
        number = number * 3 // 2
    if most > MOST:
        yield most


def parts_now(together: Together, jobs: int, idle: int, busy: int, rate: float) -> int:
    """Return into how many batches the jobs that wait now are best split, if later arrivals are unknown.

    Splitting ends the jobs sooner. But if the split takes the last idle worker, jobs that arrive meanwhile wait
    until its end, for half of the time in the mean.

    Args:
        jobs: at most a batch.
        idle, busy: workers.
        rate: arrivals a second.
    """
    whole = together.expected(busy + 1, jobs)
    best, most = 1, 0.0
    for parts in range(2, min(idle, jobs) + 1):
        seconds = together.expected(busy + parts, -(-jobs // parts))
        gain = jobs * (whole - seconds)
        if parts == idle:
            gain -= rate * seconds * seconds / 2
        if gain > most:
            best, most = parts, gain
    return best


def taken_now(together: Together, waiting: int, most: int, workers: int, arriving: float) -> int:
    """Return how many of the jobs that wait the only idle worker takes, if later arrivals are unknown.

    A worker that takes many is away for long; the others find more and more, until all have large batches and answer
    late: they bunch, as buses do. So a worker takes no more than `BUNCHED` times as many as arrive for each worker
    during a batch, or its share of what wait, if that is more. But it leaves none that would lose more, until another
    worker is idle and has run them, than the others gain.

    Args:
        most: of a batch; at least 1.
        workers: busy or not, at least 2.
        arriving: jobs for each worker during the mean batch. (Solved from their rate and the time of each size, near
            the most that workers can answer, it is 2.5 times as large when 200 arrivals come a tenth faster by chance.)
    """
    jobs = min(waiting, most)
    share, seconds = -(-waiting // workers), together.expected(workers, jobs)
    while jobs > share:
        fewer = max(share, jobs - max(1, jobs // STEPS))
        if fewer < BUNCHED * arriving:
            break
        sooner, left = together.expected(workers, fewer), jobs - fewer
        if left * (sooner / workers + together.expected(workers, left) - seconds) > fewer * (seconds - sooner):
            break
        jobs, seconds = fewer, sooner
    return jobs
