"""The candidates: numbers of workers, batch sizes, delays and policies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.workers.cores import threads_for

POLICIES = ("auto", "greedy", "fixed")  # the first of equals is preferred
_LADDER = tuple(digit * 10.0**power for power in range(-4, 2) for digit in (1, 2, 5))  # seconds
# Multiples of a: waiting cannot save more than a. For `auto` the delay is only an upper limit.
DELAYS = {"auto": (1.0, 4.0), "fixed": (0.5, 1.0, 2.0)}
LEAST_DELAY = 0.001  # seconds; timers step by a millisecond


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to serve a model; `max_delay` in seconds."""

    workers: int
    threads: int
    batch_size: int
    max_delay: float
    policy: str


def batch_sizes(most: int) -> list[int]:
    """Return the sizes to measure: 1, 2, 4, 8 and so on, and `most` itself."""
    sizes = [1]
    while sizes[-1] * 2 < most:
        sizes.append(sizes[-1] * 2)
    return sizes if most == 1 else [*sizes, most]


def worker_counts(cores: int, now: int, gpu: bool = False) -> list[int]:
    """Return the numbers of workers to try: 1, 2, 4 … up to one per core (on GPUs up to 2), and the current number."""
    most = 2 if gpu else cores
    counts = {1, most, now} | {1 << power for power in range(most.bit_length())}
    return sorted(count for count in counts if count >= 1)


def placements(cores: int, counts: Sequence[int], chosen: int | None = None) -> list[tuple[int, int]]:
    """Return (workers, threads of each): cores are shared evenly, unless OMP_NUM_THREADS chooses."""
    return [(count, threads_for(cores, count, chosen)) for count in sorted(set(counts))]


def delays(policy: str, a: float, now: float) -> list[float]:
    """Return the delays to try, in seconds, for a fixed cost of `a` seconds per batch; else the current delay."""
    wanted = {_round(factor * a) for factor in DELAYS.get(policy, ())}
    return sorted(delay for delay in wanted if delay >= LEAST_DELAY) or [now]


def _round(seconds: float) -> float:
    """Return the nearest of 1, 2, 5, 10, 20 …, by ratio."""
    return min(_LADDER, key=lambda step: max(step, seconds) / max(min(step, seconds), 1e-9))


def settings(workers: int, threads: int, sizes: Sequence[int], a: float, delay_now: float) -> Iterator[Candidate]:
    """Yield the settings of one placement; if the delay has no effect, the current one stays."""
    for size in sorted(set(sizes)):
        for policy in POLICIES:
            if size == 1 and policy != "auto":
                continue  # batches of one never wait
            for delay in delays(policy, a, delay_now) if size > 1 else [delay_now]:
                yield Candidate(workers, threads, size, delay, policy)
