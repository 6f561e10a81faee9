"""The resources of an idle daemon and its workers, and what is left of them in the end."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.served import Served, eventually
from tests.lab.benchmarks.measuring.processes import command_of
from tests.lab.harness.daemon import marked
from tsctl.daemon.core.arena import KEPT

MIB = 1024**2
# Tolerances, from the end of the warm-up to the end: allocators keep what they once had, each process differently.
DAEMON_GROWTH = 16 * MIB  # bytes
WORKER_GROWTH = 8 * MIB  # bytes, for each
DAEMON_DESCRIPTORS = 4  # a daemon that has taken over holds a few that one that was started does not
RETURNED = 60.0  # seconds
SHARED = KEPT + MIB  # bytes: what is freed below that is kept for the next bodies


@dataclass(frozen=True, slots=True)
class Footprint:
    """At one calm moment.

    Attributes:
        daemon, workers: bytes of memory (PSS) without what is shared for bodies; of all workers.
        shared: bytes of memory that is shared for bodies.
        descriptors: of the daemon.
        worker_descriptors: the most that a worker has.
    """

    daemon: int
    workers: int
    count: int
    shared: int
    descriptors: int
    worker_descriptors: int

    def __str__(self) -> str:
        return (
            f"daemon {self.daemon / MIB:.1f} MiB, {self.descriptors} descriptors; {self.count} workers"
            f" {self.workers / MIB:.1f} MiB, {self.worker_descriptors} descriptors; shared {self.shared / MIB:.1f} MiB"
        )


def growth(before: Footprint, after: Footprint) -> list[str]:
    """Return what has grown beyond its limit."""
    assert before.count == after.count, (before, after)
    limits = [
        ("the daemon's memory", before.daemon, after.daemon, DAEMON_GROWTH),
        ("the workers' memory", before.workers, after.workers, WORKER_GROWTH * before.count),
        ("the daemon's descriptors", before.descriptors, after.descriptors, DAEMON_DESCRIPTORS),
        ("a worker's descriptors", before.worker_descriptors, after.worker_descriptors, 0),
        ("memory that is shared for bodies", 0, after.shared, SHARED),
    ]
    return [
        f"{what} grew from {old} to {new}, by more than {most}" for what, old, new, most in limits if new > old + most
    ]


def measure(served: Served, workers: int) -> Footprint:
    """Wait until there are the daemon and as many workers and nothing else, and measure."""
    eventually(lambda: len(marked(served)) == workers + 1, lambda: f"{workers} workers, and no more: {_told(served)}")
    daemon = served.pid
    others = [pid for pid in marked(served) if pid != daemon]
    memory = {pid: _pss(pid) for pid in (daemon, *others)}
    return Footprint(
        daemon=memory[daemon][0],
        workers=sum(memory[pid][0] for pid in others),
        count=len(others),
        shared=sum(shared for _, shared in memory.values()),
        descriptors=_descriptors(daemon),
        worker_descriptors=max(map(_descriptors, others)),
    )


def measure_again(served: Served, before: Footprint) -> Footprint:
    """Measure until nothing has grown, for a minute at most: by then freed memory is returned (docs/promises.md)."""
    end = time.monotonic() + RETURNED
    while growth(before, now := measure(served, before.count)) and time.monotonic() < end:
        time.sleep(1)
    return now


def left_behind(served: Served) -> list[str]:
    """Wait until all processes of a daemon that is stopped have ended; name what it has left, and should not have."""
    eventually(lambda: not marked(served), lambda: f"all end: {[*map(command_of, marked(served))]}")
    state, socket = served.folder / "state", served.folder / "control.sock"
    wanted = kept_directories(state / "snapshot.json")
    left = [directory for directory in (state / "models").iterdir() if directory.name not in wanted]
    left += [file for file in (state / "sums").glob("*") if file.name not in wanted]
    for folder in ("environments", "downloads", "compiled"):  # nothing here makes any
        left += (state / folder).glob("*")
    known = {"events.jsonl", "events.jsonl.1", "events.jsonl.lock", "lock", "logs", "models", "snapshot.json",
             "environments", "downloads", "compiled", "sums"}  # fmt: skip
    left += [file for file in state.iterdir() if file.name not in known]
    left += [file for file in (state / "logs").iterdir() if file.suffix != ".log"]
    left += [file for file in (socket, socket.with_suffix(".pid")) if file.exists()]
    missing = [f"{name} is missing" for name in wanted if not (state / "models" / name).is_dir()]
    return [*map(str, left), *missing]


def kept_directories(snapshot: Path) -> set[str]:
    """Return the unpacked directories that a state directory should have, by its snapshot.

    They are those of registered versions, and of registered models before their latest changes (`rollback`).
    """
    document = json.loads(snapshot.read_bytes())
    registered = {entry["name"] for entry in document["models"]}
    earlier = [entry for each in document["earlier"] if each["name"] in registered for entry in each["versions"]]
    return {entry["unpacked"] for entry in (*document["models"], *earlier) if entry["unpacked"] is not None}


def _told(served: Served) -> list[str]:
    return [f"{pid} {command_of(pid)}" for pid in marked(served)]


def _pss(pid: int) -> tuple[int, int]:
    """Bytes of a process's own, and of what is in memory that is shared for bodies."""
    values = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    total, shared = (int(values[name].split()[0]) * 1024 for name in ("Pss", "Pss_Shmem"))
    return total - shared, shared


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
