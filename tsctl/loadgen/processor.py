"""This process's CPU time, and the time it was runnable without a core."""

import time
from dataclasses import dataclass
from pathlib import Path

_SCHEDSTAT = Path("/proc/self/schedstat")  # nanoseconds of the main thread: run, waited; and a count


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Seconds since the process began, or between two readings."""

    used: float
    waited: float

    def __sub__(self, before: "ProcessorTime") -> "ProcessorTime":
        return ProcessorTime(self.used - before.used, self.waited - before.waited)


def look() -> ProcessorTime:
    """Read the clocks; `waited` is 0.0 if the kernel does not count it."""
    try:
        waited = int(_SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        waited = 0.0
    return ProcessorTime(time.process_time(), waited)
