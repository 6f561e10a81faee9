"""Which process used the cores, and which waited for one, from /proc/PID/task/*/schedstat."""

from pathlib import Path
from typing import NamedTuple


class Used(NamedTuple):
    """Seconds on a core, and seconds ready to run without a core; of all threads of one process."""

    cpu: float
    waited: float

    def since(self, before: "Used") -> "Used":
        return Used(self.cpu - before.cpu, self.waited - before.waited)


def used_by(pid: int) -> Used:
    cpu = waited = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        running, ready, _ = (thread / "schedstat").read_text().split()
        cpu += int(running)
        waited += int(ready)
    return Used(cpu / 1e9, waited / 1e9)
