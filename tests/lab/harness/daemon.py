"""A daemon's processes, and archives whose answers have an account (accounts.py)."""

import contextlib
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.benchmarks.measuring.processes import command_of

MARK = "UPGRADES_MARK"  # in the environment of whatever a daemon has started


def mark(served: Served) -> Path:
    """Mark what the daemon will start, and let handlers write a journal; return its path."""
    journal = served.folder / "journal"
    journal.touch()
    served.forks = False  # the kernel tells the environment and the command with which a process was executed
    served.environment |= {MARK: str(served.folder), "CHAOS_JOURNAL": str(journal)}
    return journal


def marked(served: Served) -> list[int]:
    """The processes that the daemon, or one that has replaced it, has started, and itself."""
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if is_marked(served, int(entry.name))]


def is_marked(served: Served, pid: int) -> bool:
    with contextlib.suppress(OSError):
        return f"{MARK}={served.folder}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
    return False


def successors(served: Served, before: Collection[int]) -> Iterator[int]:
    """Find the daemons that are about to replace this one, and were not there before."""
    return (pid for pid in set(marked(served)) - set(before) if "--inherit=" in command_of(pid))


def kill_worker(served: Served, pid: int, killed: set[int]) -> bool:
    """Kill a process if it is a worker of this daemon, and note it first: its answer may be here at once."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            if is_marked(served, pid) and "tsctl.handlers.worker" in command_of(pid):
                killed.add(pid)
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        finally:
            os.close(handle)
    return False


def pack_accounts(served: Served, model: str, generation: int, settings: str, version: str = "1.0") -> str:
    """Put an archive into the store whose answers tell this number; give its file name."""
    folder = served.folder / "packing"
    folder.mkdir(exist_ok=True)
    (folder / "generation.txt").write_text(str(generation))
    (folder / "model-config.yaml").write_text(settings)
    files = {"extra_files": str(folder / "generation.txt"), "config_file": folder / "model-config.yaml"}
    return served.pack("accounts", model, version, **files)


def logs(served: Served) -> str:
    """Return all that the daemons have logged."""
    return "".join(path.read_text() for path in sorted((served.folder / "state" / "logs").glob("daemon.log*")))
