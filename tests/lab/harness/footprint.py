"""The resources of an idle daemon and its workers, and what is left of them in the end."""

import json
import os
import time
from pathlib import Path

from tests.e2e.served import Served, eventually
from tests.lab.benchmarks.measuring.processes import command_of
from tests.lab.harness.daemon import marked
from tsctl.daemon.core.arena import KEPT

MIB = 1024**2
RETURNED = 60.0  # seconds
# By how much each may grow from the end of the warm-up to the end: allocators keep what they once had, each process
# differently. Memory is PSS, without what is shared for bodies.
GROWTH = {
    "bytes of the daemon": 16 * MIB,
    "bytes of a worker, on average": 8 * MIB,
    "bytes shared for bodies": 0,
    "descriptors of the daemon": 4,  # one that has taken over holds a few that one that was started does not
    "descriptors of a worker, at most": 0,
}
SHARED = KEPT + MIB  # bytes: what is freed below that is kept for the next bodies

Footprint = dict[str, int]  # at one calm moment, by the names above


def growth(before: Footprint, after: Footprint) -> list[str]:
    """Return what has grown beyond its limit."""
    limits = {what: before[what] + most for what, most in GROWTH.items()} | {"bytes shared for bodies": SHARED}
    return [f"{what}: from {before[what]} to {after[what]}" for what, most in limits.items() if after[what] > most]


def measure(served: Served, workers: int) -> Footprint:
    """Wait until there are the daemon and as many workers and nothing else, and measure."""
    eventually(lambda: len(marked(served)) == workers + 1, lambda: f"{workers} workers, and no more: {_told(served)}")
    daemon = served.pid
    others = [pid for pid in marked(served) if pid != daemon]
    memory = {pid: _pss(pid) for pid in (daemon, *others)}
    found = (
        memory[daemon][0],
        sum(memory[pid][0] for pid in others) // workers,
        sum(shared for _, shared in memory.values()),
        _descriptors(daemon),
        max(map(_descriptors, others)),
    )
    return dict(zip(GROWTH, found, strict=True))


def measure_again(served: Served, workers: int, before: Footprint) -> Footprint:
    """Measure until nothing has grown, for a minute at most: by then freed memory is returned (docs/promises.md)."""
    end = time.monotonic() + RETURNED
    while growth(before, now := measure(served, workers)) and time.monotonic() < end:
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
