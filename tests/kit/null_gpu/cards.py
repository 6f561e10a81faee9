"""Processes on null cards, and what each did there."""

import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from tests.kit.null_gpu import library
from tests.places import ROOT

ASSERT = 710  # cudaErrorAssert: a kernel's assertion failed, as of an index out of range
MEMORY = 2 << 30  # bytes of a card: what depends on data has garbage for sizes
SITE = Path(__file__).parent / "site"
_PAGE = 4096
_NUMBER = struct.Struct("q")


class Did(NamedTuple):
    """How often a thread waited, for events as well; started a copy to a card; started a kernel, or a graph."""

    waits: int
    copies: int
    kernels: int


class OnCards:
    """A process that has called CUDA; its counters can be read after its end as well.

    Attributes:
        pid: its id.
    """

    def __init__(self, file: Path) -> None:
        self.pid = int(file.name)
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)
        self._names = self._map[:_PAGE].rstrip(b"\0").decode().split()

    def __repr__(self) -> str:
        return f"<process {self.pid}: {self.counters}>"

    def __getitem__(self, name: str) -> int:
        """Return one of FIELDS of null_cuda.c."""
        return int(_NUMBER.unpack_from(self._map, self._place(name))[0])

    @property
    def counters(self) -> dict[str, int]:
        return {name: self[name] for name in self._names}

    @property
    def threads(self) -> dict[int, Did]:
        """Thread id → what it did."""
        told = struct.iter_unpack("4q", self._map[_PAGE + _NUMBER.size * len(self._names) :])
        return {thread: Did(*did) for thread, *did in told if thread}

    def break_context(self, error: int = ASSERT) -> None:
        """Let each call fail from now on, as after an error of a kernel, which only another process is free of."""
        self._write("broken", error)

    def break_by_kernel(self, number: int = 1) -> None:
        """Let the kernel of this number from now, or the graph, break the context: what is called after it fails."""
        self._write("fuse", number)

    def _place(self, name: str) -> int:
        return _PAGE + _NUMBER.size * self._names.index(name)

    def _write(self, name: str, value: int) -> None:
        _NUMBER.pack_into(self._map, self._place(name), value)


def processes_of(folder: Path) -> Iterator[OnCards]:
    """Yield the processes that have called CUDA, the oldest first."""
    for file in sorted(folder.iterdir(), key=lambda file: file.stat().st_ctime_ns):
        if file.is_file() and file.stat().st_size > _PAGE:
            yield OnCards(file)


class Cards:
    """Some null cards.

    Args:
        folder: for the files of processes.
        count: of cards; with 0 CUDA finds none, as with a driver that gives none.
        listed: how many NVML lists; by default, as many.
        memory: of each, in bytes.
        parts: of the first (MIG), which share its memory; 0: it is whole. Of a process, `card_4` is then part 0.

    Attributes:
        environment: variables, for a process that is to have the cards, and its children.
    """

    def __init__(
        self, folder: Path, count: int = 1, *, listed: int | None = None, memory: int = MEMORY, parts: int = 0
    ) -> None:
        self._folder = folder / "cards"
        self._folder.mkdir()
        libraries = library.folder()
        self.environment = {
            "LD_PRELOAD": str(libraries / library.LIBRARY),
            "LD_LIBRARY_PATH": _before("LD_LIBRARY_PATH", libraries),
            "PYTHONPATH": _before("PYTHONPATH", SITE),
            "NULL_CUDA_FOLDER": str(self._folder),
            "NULL_CUDA_CARDS": str(count),
            "NULL_CUDA_LISTED": str(count if listed is None else listed),
            "NULL_CUDA_MEMORY": str(memory),
            "NULL_CUDA_PARTS": str(parts),
        }

    def run(self, program: str, *arguments: str) -> str:
        """Run a Python program, which must succeed; return its stdout."""
        command = [sys.executable, "-c", program, *arguments]
        environment = os.environ | self.environment
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def __iter__(self) -> Iterator[OnCards]:
        """Yield the processes that have called CUDA, the oldest first."""
        return processes_of(self._folder)

    def of(self, pid: int) -> OnCards:
        return OnCards(self._folder / str(pid))

    def in_use(self) -> int:
        """Return the bytes that processes which still run have on the cards."""
        return sum(each["memory"] for each in self if Path(f"/proc/{each.pid}").exists())


def cards_or_skip(folder: Path, count: int = 1, **further: Any) -> Cards:
    """Return `Cards`; skip the test where there can be none."""
    try:
        return Cards(folder, count, **further)
    except library.Unavailable as reason:
        pytest.skip(f"no null card: {reason}")


def _before(name: str, folder: Path) -> str:
    """Return a variable's folders, with this one before them."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get(name)])])


class Delta:
    """How much each counter of a process grew within a block.

    Attributes:
        threads: of each thread that did anything, what.
    """

    def __init__(self, process: OnCards) -> None:
        self._process = process
        self.threads: list[Did] = []
        self._grown: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._before, self._threads = self._process.counters, self._process.threads
        return self

    def __exit__(self, *_: object) -> None:
        self._grown = {name: value - self._before[name] for name, value in self._process.counters.items()}
        for thread, now in self._process.threads.items():
            before = self._threads.get(thread, Did(0, 0, 0))
            if now != before:
                self.threads.append(Did(*(more - fewer for more, fewer in zip(now, before, strict=True))))

    @property
    def waits(self) -> list[int]:
        """How often each thread waited that did."""
        return [did.waits for did in self.threads if did.waits]

    def __getitem__(self, name: str) -> int:
        return self._grown[name]
