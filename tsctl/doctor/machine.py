"""Read the facts about processors, memory, GPUs, limits, clocks and the installation."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path

from tsctl.daemon.core.machine.cards import Card, FoundCards, ask_cards, find_cards, names_for_cuda, visible_cards
from tsctl.daemon.core.machine.cgroups import groups_of, quotas
from tsctl.daemon.core.machine.processes import available
from tsctl.daemon.workers.cores import chosen_threads
from tsctl.doctor.facts import Clocks, GpuFacts, Installation, MemoryFacts, ProcessLimits, Processors, Space, TriedGpu
from tsctl.render import bytes_text

_NVIDIA = 0x10DE  # vendor of PCI
_DISPLAY = 0x03  # class of PCI
_GPU_TIMEOUT = 60.0  # seconds: the driver may have to start the GPU, and torch's import may be slow


class Machine:
    """Reads files below a root, which a test makes itself.

    Args:
        root: of /proc, /sys and /dev.
        cards: finds the GPUs, given the directory of the kernel module.
        tries: has torch run a kernel on GPUs, given their names for CUDA; returns what it printed, and for how many
            seconds it hung.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        cards: Callable[[Path], FoundCards] | None = None,
        tries: Callable[[Sequence[str]], tuple[str, float]] | None = None,
    ) -> None:
        self._root = root
        self._cards = cards or (lambda directory: find_cards(partial(ask_cards, _GPU_TIMEOUT), directory=directory))
        self._tries = tries or try_gpus

    def processors(self) -> Processors:
        names = _fields(self._text("proc/cpuinfo"))
        return Processors(
            online=os.cpu_count() or 1,
            allowed=len(os.sched_getaffinity(0)),
            quota=min(quotas(self._root / "proc"), default=None),
            threads=chosen_threads(os.environ),
            model=names.get("model name") or f"a processor of {os.uname().machine}",
            flags=frozenset((names.get("flags") or names.get("features") or "").split()),
        )

    def memory(self) -> MemoryFacts:
        """Return the memory of the machine or of a cgroup, where least is left."""
        whole, *groups = available(self._root / "proc")
        least = min(whole, *groups) if groups else whole
        return MemoryFacts(total=least.limit, left=least.left, cgroup="" if least is whole else least.owner)

    def gpus(self) -> GpuFacts:
        """Return the NVIDIA GPUs; torch and CUDA run in a process of their own."""
        devices = [
            folder
            for folder in self._folders("sys/bus/pci/devices")
            if _number(folder / "vendor") == _NVIDIA and _number(folder / "class") >> 16 == _DISPLAY
        ]
        driver = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", self._text("proc/driver/nvidia/version"))
        found = self._cards(self._root / "proc/driver/nvidia/gpus")
        visible = visible_cards(os.environ, found.cards)
        numbers = sorted({card.index for card in found.cards})
        nodes = [self._root / "dev" / name for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{n}" for n in numbers))]
        closed = [f"/dev/{node.name}" for node in nodes if node.exists() and not os.access(node, os.R_OK | os.W_OK)]
        tried, hung = self._tries(names_for_cuda(visible, found.cards)) if visible and not closed else ("", 0.0)
        return GpuFacts(
            devices=len(devices),
            driver=found.driver or (driver[1] if driver else ""),
            found=len(found.cards),
            visible=len(visible),
            closed=tuple(closed),
            names=tuple(_card_text(card) for card in visible if card.name),
            parts=any(card.part for card in visible),
            troubles=tuple(found.troubles),
            tried=tuple(TriedGpu(**json.loads(line)) for line in tried.splitlines()),
            hung=hung,
        )

    def shared_memory(self) -> Space | None:
        """Return the room in /dev/shm; None without a directory there that can be written."""
        folder = self._root / "dev/shm"
        return space_of(folder, "/dev/shm") if os.access(folder, os.W_OK | os.X_OK) else None

    def limits(self) -> ProcessLimits:
        pids = [self._text(f"{folder}/pids.max").strip() for folder in groups_of("pids", self._root / "proc")]
        return ProcessLimits(
            files=_limit(resource.RLIMIT_NOFILE),
            processes=_limit(resource.RLIMIT_NPROC) if os.getuid() else None,  # does not bind root
            cgroup_processes=min((int(text) for text in pids if text.isdigit()), default=None),
        )

    def clocks(self) -> Clocks:
        booted = re.search(r"^btime (\d+)$", self._text("proc/stat"), re.MULTILINE)
        source = self._text("sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
        return Clocks(
            now=time.time(),
            booted=float(booted[1]) if booted else None,
            installed=_installed(),
            source=source,
        )

    def _text(self, name: str) -> str:
        try:
            return (self._root / name).read_text(errors="replace")
        except OSError:
            return ""

    def _folders(self, name: str) -> list[Path]:
        try:
            return sorted((self._root / name).iterdir())
        except OSError:
            return []


def try_gpus(names: Sequence[str], timeout: float = _GPU_TIMEOUT) -> tuple[str, float]:
    """Run a kernel of torch on each GPU, in a process for each; of parts of GPUs CUDA sees one in a process.

    Returns:
        A line of JSON for each, and for how many seconds the one after them hung.
    """
    told = ""
    for place, name in enumerate(names):
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": name, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tsctl.handlers.sdk.gpu", str(place)], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            told += process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            process.kill()  # one that hangs in its driver stays
            return told, timeout
    return told, 0.0


def _card_text(card: Card) -> str:
    return f"{card.name} ({bytes_text(card.total)})"


def installed() -> Installation:
    """Return what is installed in this environment, without importing it."""
    spec = find_spec("tsctl.daemon.core.job")
    return Installation(
        version=_version("tsctl"),
        python=sys.version.split()[0],
        compiled=spec is not None and not (spec.origin or "").endswith(".py"),
        torch=_version("torch"),
    )


def space_of(folder: Path, place: str) -> Space:
    """Return the room of the file system of a directory."""
    found = os.statvfs(folder)
    inodes = found.f_favail if found.f_files else None
    return Space(place, found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize, inodes)


def _fields(text: str) -> dict[str, str]:
    """Return the lines `name : value`, of several the first, with names in small letters."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), value.strip())
    return found


def _number(file: Path) -> int:
    try:
        return int(file.read_text(), 16)
    except (OSError, ValueError):
        return 0


def _limit(number: int) -> int | None:
    hard = resource.getrlimit(number)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _installed() -> float:
    """Return when tsctl was installed, seconds since the epoch; 0 if that is not recorded."""
    try:
        for file in distribution("tsctl").files or ():
            if file.name == "RECORD":
                return os.stat(file.locate()).st_mtime
    except (PackageNotFoundError, OSError):
        pass
    return 0.0
