"""Processes that read the images of a batch for a worker on a GPU, which keeps the interpreter's lock for its own work.

    worker ──files──▶ reader 1 ─┐  pixels
           ──files──▶ reader 2 ─┴────────▶ a slot of shared, pinned memory ──▶ the GPU
           ◀── which rows are no images ──

A fast GPU runs 10 000 images a second, and reading one takes that lock some ten times: with threads of one process, the
kernels of a batch wait for the lock more than for the GPU. Sixteen threads on 16 cores read 4 474 images/s in one
process, and 7 542 in four (beside an H100, `python -m tests.lab.gpu.parts`).

A batch has a slot until nothing holds its rows. One that finds none free is copied out of a slot that is always the
same, and so is any where the memory cannot be pinned.

They are forked before the worker calls CUDA, which no process forked later could use, and end with it. One that has
died is not replaced: the worker reads its share itself.
"""

import contextlib
import ctypes
import gc
import io
import itertools
import logging
import math
import mmap
import os
import signal
import socket
import struct
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import msgspec
import torch

from tsctl.handlers.builtin.support.decoders import compute_alone
from tsctl.handlers.own_process import die_with
from tsctl.handlers.sdk.errors import UnreadablePayload

_log = logging.getLogger(__name__)

THREADS = 4  # of a reader: more would wait for its lock
SLOTS = 4  # for the batches under way (process/pipeline.py), and one whose copy may have ended only now
_LENGTH = struct.Struct("<I")  # before an order, and before the outcomes
_READ, _LEFT = "", "\0"  # outcomes: the pixels are there; the worker has to read the row. Any other: why it cannot be
Read = Callable[[bytes, int | None], torch.Tensor]
Pin = Callable[[torch.Tensor], bool]
Outcome = torch.Tensor | UnreadablePayload | None


class _Order(msgspec.Struct, array_like=True):
    """Rows to read; their files follow.

    Attributes:
        place: of the first row.
        lengths: of their files.
    """

    place: int
    lengths: list[int]
    least_side: int | None


class _Reader(NamedTuple):
    """One process, as the worker has it."""

    pid: int
    descriptor: int
    file: io.BufferedRWPair


def pin(memory: torch.Tensor, gpu: int = 0) -> bool:
    """Pin memory that is there, once this process uses CUDA; return whether that could be done.

    Args:
        gpu: one that the process uses; all can copy from the memory.
    """
    if not torch.cuda.is_initialized():
        return False
    with torch.cuda.device(gpu):
        code = torch.cuda.cudart().cudaHostRegister(memory.data_ptr(), memory.nbytes, 0)
    return int(code) == 0


class _Slot:
    """A part of the shared memory, for the rows of one batch."""

    def __init__(self, memory: mmap.mmap, number: int, shape: Sequence[int]) -> None:
        self.number = number
        self._memory, self._shape, self._size = memory, shape, math.prod(shape)
        self._lent: weakref.ref[Any] | None = None

    @property
    def free(self) -> bool:
        """Whether no tensor of it is left."""
        return self._lent is None or self._lent() is None

    def lend(self) -> torch.Tensor:
        """Return its memory as a tensor; it is free again when that, and all views of it, are gone."""
        owner = (ctypes.c_uint8 * self._size).from_buffer(self._memory, self.number * self._size)
        self._lent = weakref.ref(owner)
        return torch.frombuffer(owner, dtype=torch.uint8).view(*self._shape)


class Readers:
    """Reads the rows of a batch.

    Args:
        read: returns an image file's pixels, with `least_side` of `decode_image`; raises UnreadablePayload for what is
            no image. Any other error, or other pixels than announced, leaves the row to the worker.
        threads: of all readers together.
        shape: of a row's pixels, which are uint8.
        rows: at once; longer batches are read in parts.
        pin: as `pin`.

    Raises:
        OSError: there is no memory or no pid for a process.
    """

    def __init__(self, read: Read, threads: int, shape: Sequence[int], rows: int, pin: Pin = pin) -> None:
        self._rows = rows
        self._pin, self._pinned = pin, False
        memory = mmap.mmap(-1, (1 + SLOTS) * rows * math.prod(shape))
        self._pixels = torch.frombuffer(memory, dtype=torch.uint8).view(-1, *shape)
        self._always, *self._slots = (_Slot(memory, number, (rows, *shape)) for number in range(1 + SLOTS))
        self._readers: list[_Reader] = []
        for _ in range(math.ceil(threads / THREADS)):
            self._readers.append(self._fork(read, min(threads, THREADS)))

    def read(self, files: Sequence[bytes | bytearray], least_side: int | None) -> list[Outcome]:
        """Read a batch, with as many readers as there is work for on the calling thread's number of threads.

        Returns:
            For each row its pixels, why it cannot be read, or None: the worker has to read it.
        """
        made: list[Outcome] = []
        for start in range(0, len(files), self._rows):
            made += self._read_part(files[start : start + self._rows], least_side)
        return made

    def close(self) -> None:
        """End them, and wait for their ends."""
        while self._readers:
            self._drop(self._readers[-1])

    def _read_part(self, files: Sequence[bytes | bytearray], least_side: int | None) -> list[Outcome]:
        readers = self._readers[: math.ceil(torch.get_num_threads() / THREADS)]
        slot = self._slot()
        asked = []
        for reader, (start, end) in zip(readers, shares(len(files), len(readers)), strict=False):
            with self._reaching(reader):
                _ask(reader.file, files[start:end], slot.number * self._rows + start, least_side)
                asked.append((reader, start, end))
        told = [_LEFT] * len(files)
        for reader, start, end in asked:
            with self._reaching(reader):
                told[start:end] = msgspec.msgpack.decode(_heard(reader.file), type=list[str])
        pixels = self._copied(len(files)) if slot is self._always else slot.lend()
        return [_outcome(each, pixels[place]) for place, each in enumerate(told)]

    def _slot(self) -> _Slot:
        """Return a slot whose rows a GPU can copy from, as long as nothing holds any; else the one that is copied."""
        self._pinned = self._pinned or self._pin(self._pixels)
        free = [slot for slot in self._slots if slot.free] if self._pinned else []
        return free[0] if free else self._always

    def _copied(self, rows: int) -> torch.Tensor:
        pinned = torch.cuda.is_initialized()
        return torch.empty((rows, *self._pixels.shape[1:]), dtype=torch.uint8, pin_memory=pinned).copy_(
            self._pixels[:rows]
        )

    @contextlib.contextmanager
    def _reaching(self, reader: _Reader) -> Iterator[None]:
        """Drop a reader that has died."""
        try:
            yield
        except (OSError, EOFError):
            self._drop(reader)
            _log.warning("a process that reads images has died; %d are left, and the worker itself", len(self._readers))

    def _drop(self, reader: _Reader) -> None:
        self._readers.remove(reader)
        with contextlib.suppress(OSError):  # what is left to be written
            reader.file.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(reader.pid, signal.SIGKILL)  # nothing of what it does is kept
        with contextlib.suppress(ChildProcessError):
            os.waitpid(reader.pid, 0)

    def _fork(self, read: Read, threads: int) -> _Reader:
        ours, theirs = socket.socketpair()
        worker = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                die_with(worker)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                gc.freeze()
                for other in self._readers:
                    os.close(other.descriptor)
                ours.close()
                _serve(theirs.makefile("rwb"), read, threads, self._pixels)
            finally:
                os._exit(0)
        theirs.close()
        with ours:  # which stays open for as long as the file
            return _Reader(pid, ours.fileno(), ours.makefile("rwb"))


def shares(rows: int, readers: int) -> list[tuple[int, int]]:
    """Divide rows among readers: the first and the one after the last of each share, none of them empty."""
    readers = min(readers, rows)
    ends = [rows * reader // readers for reader in range(readers + 1)] if readers else []
    return list(itertools.pairwise(ends))


def _outcome(told: str, pixels: torch.Tensor) -> Outcome:
    if told == _READ:
        return pixels
    return None if told == _LEFT else UnreadablePayload(told)


def _ask(file: io.BufferedRWPair, files: Sequence[bytes | bytearray], place: int, least_side: int | None) -> None:
    _say(file, _Order(place, [len(each) for each in files], least_side))
    for each in files:
        file.write(each)
    file.flush()


def _say(file: io.BufferedRWPair, what: object) -> None:
    text = msgspec.msgpack.encode(what)
    file.write(_LENGTH.pack(len(text)) + text)


def _exactly(file: io.BufferedRWPair, length: int) -> bytes:
    """Read so many bytes; raise EOFError if the other side has ended before."""
    got = file.read(length)
    if len(got) < length:
        raise EOFError
    return got


def _heard(file: io.BufferedRWPair) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(file, _LENGTH.size))
    return _exactly(file, length)


def _serve(file: io.BufferedRWPair, read: Read, threads: int, pixels: torch.Tensor) -> None:
    """Read images until the worker has ended; each begins as soon as its file is there."""

    def attempt(place: int, encoded: bytes, least_side: int | None) -> str:
        try:
            pixels[place].copy_(_as_announced(read(encoded, least_side), pixels[place]))
        except UnreadablePayload as error:
            return str(error).encode(errors="replace").decode() or _LEFT
        except Exception:  # noqa: BLE001 - the worker meets it, and tells it
            return _LEFT
        return _READ

    with ThreadPoolExecutor(threads, "read", initializer=compute_alone) as pool, contextlib.suppress(EOFError):
        while True:
            order = msgspec.msgpack.decode(_heard(file), type=_Order)
            waiting = [
                pool.submit(attempt, place, _exactly(file, length), order.least_side)
                for place, length in enumerate(order.lengths, order.place)
            ]
            _say(file, [each.result() for each in waiting])
            file.flush()


def _as_announced(read: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    if (read.shape, read.dtype) != (place.shape, place.dtype):
        raise ValueError(f"{read.dtype} of {tuple(read.shape)}")  # `copy_` would broadcast and convert
    return read
