"""Count the cores that the workers may use, and the threads of each."""

import os
from collections.abc import Mapping, Sequence

from tsctl.daemon.core.machine.cgroups import quotas


def usable_cores() -> int:
    """Count the cores this process may use: affinity, and the tightest cgroup quota above it; at least 1."""
    cores = min([float(len(os.sched_getaffinity(0))), *quotas()])
    return max(1, int(cores))


def chosen_threads(environment: Mapping[str, str]) -> int | None:
    """Return the operator's number of threads for each worker: `OMP_NUM_THREADS`, None if unset or invalid.

    A list is for nested parallel regions (OpenMP 5.2, 21.1.2): the first number counts.
    """
    text = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def threads_for(cores: int, workers: int, chosen: int | None = None) -> int:
    """Return the intra-op threads of each worker: the chosen number, else cores ÷ workers, at least 1.

    More threads than cores is far worse than too few: they spin while they wait for each other.
    """
    return chosen or max(1, cores // max(1, workers))


def oversubscription(
    cores: int, workers: int, chosen: int | None = None, processes: int = 1, *, of_model: int | None = None
) -> str | None:
    """Return a warning and a remedy if the workers of a version have more threads than there are cores; None if not.

    Args:
        chosen: by the operator, with OMP_NUM_THREADS.
        processes: of each worker.
        of_model: the threads that the model's settings name, which win.
    """
    count = workers * processes
    threads = threads_for(cores, count, of_model or chosen)
    if count * threads <= cores:
        return None
    noun = "workers" if processes == 1 else "processes"
    have = f"{count} × {threads} threads" if threads > 1 else f"{count} {noun}"
    share = "1 core" if cores == 1 else f"{cores} cores"
    better = f"at most {cores} would be faster"
    if threads > 1:
        better = f"`threads` is {of_model}" if of_model else f"OMP_NUM_THREADS is {chosen}: unset it"
        better += f": {max(1, cores // count)} would be faster" if of_model else ""
    return f"{have} share {share} and slow each other down; {better}"


def crowding(cores: int, threads: int, of_each: Sequence[int]) -> tuple[str, str] | None:
    """Return a warning and its remedy if the workers of several models have more threads than there are cores.

    None if they have not, or if fewer threads of each would not help the model in question.

    Args:
        threads: of one worker of that model.
        of_each: the threads of all workers of each model, that one among them; 0 for those without.
    """
    busy = [each for each in of_each if each]
    fewer = max(1, cores // max(1, len(busy)))
    if len(busy) < 2 or sum(busy) <= cores or threads <= fewer:
        return None
    share = "1 core" if cores == 1 else f"{cores} cores"
    return (
        f"{len(busy)} models share {share} with {sum(busy)} threads, and slow each other down while they work at once",
        f"`tsctl set MODEL --threads {fewer}` for each",
    )
