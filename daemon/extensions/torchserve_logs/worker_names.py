"""The names of workers in TorchServe's logs: `W-9000-MODEL_VERSION`, the place of the worker instead of its process."""

import os
from collections.abc import Callable

FIRST_NUMBER = 9000


def exists(pid: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class WorkerNames:
    """The names of one version's workers; a worker that replaces another gets its number."""

    def __init__(self, model: str, version: str, exists: Callable[[int], bool] = exists) -> None:
        self._named = f"{model}_{version}"
        self._exists = exists
        self._numbers: dict[int, int] = {}  # pid → number

    def find(self, pid: int) -> str:
        """Return the name of the worker with this process."""
        number = self._numbers.get(pid)
        if number is None:
            self._numbers = {known: number for known, number in self._numbers.items() if self._exists(known)}
            taken = set(self._numbers.values())
            number = next(each for each in range(FIRST_NUMBER, FIRST_NUMBER + len(taken) + 1) if each not in taken)
            self._numbers[pid] = number
        return f"W-{number}-{self._named}"
