"""What this process has of the processors: the time it ran, and the time it was ready to and found no core."""

import time
from dataclasses import dataclass
from pathlib import Path

_SCHEDSTAT = Path("/proc/self/schedstat")  # nanoseconds of the main thread: run, waited; and a count


@dataclass(frozen=True, slots=True)
class Processor:
    """Seconds since the process began, or between two looks."""

    used: float
    waited: float

    def __sub__(self, before: "Processor") -> "Processor":
        return Processor(self.used - before.used, self.waited - before.waited)


def look() -> Processor:
    """Look at the clocks; a kernel that does not count the waiting has none."""
    try:
        waited = int(_SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        waited = 0.0
    return Processor(time.process_time(), waited)
