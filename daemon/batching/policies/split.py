"""Choose over how many workers the clients are split.

k simultaneous batches take the time learned for k busy workers (traffic/together.py): where workers share cores,
splitting saves nothing, and where each has its own, splitting saves all but the fixed cost.
"""

from tsctl.daemon.batching.traffic.together import Together

WORTH_IT = 1.02  # times as fast: for less no further worker is used


def best_parts(together: Together, jobs: int, workers: int, batch_size: int) -> int:
    """Return into how many simultaneous batches recurring jobs are best split, for the most answers a second.

    Jobs over `batch_size` wait for the next round.

    Args:
        jobs: at least 1.
        workers: present, busy or not; at least 1.
    """
    best, most = 1, 0.0
    for parts in range(1, min(workers, jobs) + 1):
        size = min(jobs / parts, batch_size)
        seconds = together.hoped(parts, size)
        rate = parts * size / seconds if seconds else 0.0
        if rate > most * WORTH_IT:
            best, most = parts, rate
    return best


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
