"""This machine's processor, memory and disk, read from /proc at each scrape.

Names and units are TorchServe's: percent, megabytes of 1024² bytes, gigabytes of 1024³.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

MB = 1024**2
GB = 1024**3


class HostMonitor:
    """Reads the machine.

    Args:
        proc: where the proc file system is.
        disk: a path on the measured disk.
    """

    def __init__(self, proc: Path = Path("/proc"), disk: str = "/") -> None:
        self._proc = proc
        self._disk = disk
        self._busy = self._total = 0
        self._percent = 0.0
        self.processor()  # the first answer counts from here

    def read(self) -> dict[str, float]:
        """Return name → value, without unreadable values."""
        values: dict[str, float] = {}
        for part in (self.processor, self.memory, self.disk):
            with contextlib.suppress(OSError, ValueError, KeyError):
                values.update(part())
        return values

    def processor(self) -> Mapping[str, float]:
        """Return how busy all cores were since the last call, in percent. proc(5), stat: ticks by kind of use."""
        try:
            with (self._proc / "stat").open() as file:
                ticks = [int(word) for word in file.readline().split()[1:9]]  # user … steal; guests are in user
        except OSError:
            return {}
        total, busy = sum(ticks), sum(ticks) - sum(ticks[3:5])  # without idle and iowait
        if total > self._total:  # otherwise not a tick has passed, and the last answer stands
            self._percent = 100.0 * max(0, busy - self._busy) / (total - self._total)
            self._busy, self._total = busy, total
        return {"CPUUtilization": self._percent}

    def memory(self) -> Mapping[str, float]:
        """Return used and available memory, as the kernel estimates them. proc(5), meminfo: in KiB."""
        sizes = {}
        for line in (self._proc / "meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            sizes[name] = int(rest.split()[0]) * 1024
        total, available = sizes["MemTotal"], sizes["MemAvailable"]
        return {
            "MemoryUsed": (total - available) / MB,
            "MemoryAvailable": available / MB,
            "MemoryUtilization": 100.0 * (total - available) / total,
        }

    def disk(self) -> Mapping[str, float]:
        """Return used and available disk space, without the part reserved for root."""
        found = os.statvfs(self._disk)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        available = found.f_bavail * found.f_frsize
        return {
            "DiskUsage": used / GB,
            "DiskAvailable": available / GB,
            "DiskUtilization": 100.0 * used / (used + available) if used + available else 0.0,
        }
