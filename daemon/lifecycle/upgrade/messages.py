"""The messages between the old and the new daemon: JSON, a line each, on a socketpair.

    old ── Inheritance ──────────────────────────▶ new    the inherited descriptors, by number
    old ◀─ Progress … ──────────────────────────── new
    old ◀─ ReadyToTakeOver, or TakeoverFailed ──── new    the former asks to take over
    old ── TakeOver ─────────────────────────────▶ new    nothing has changed since, and will not; the counts so far
    old ◀─ TakenOver ───────────────────────────── new    the new one accepts connections, and now changes too
    old ── Totals … ─────────────────────────────▶ new    what the old one has counted since

Closing the socket leaves the other side on its own. Either side may be of another version: unknown
fields are ignored, and a new form gets a new number.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.metrics.totals import Totals

FORM = 1
LONGEST = 4 * 1024 * 1024  # bytes of a line: a traceback, or some thousand models
COUNTS = 1024 * 1024  # bytes: of some hundred versions

T = TypeVar("T")


class Bound(msgspec.Struct, frozen=True):
    """A listening TCP address; `flag`, `host` and `port` as in Endpoint."""

    flag: str
    host: str
    port: int
    descriptor: int


class Expected(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version that the old daemon serves.

    Attributes:
        must: the version was ready, and has to become ready in the new daemon; otherwise an attempt is enough.
        workers: the target number.
        entry: the registration of an ephemeral version, which the snapshot does not hold, as a snapshot of this one
            version; empty for any other.
    """

    name: str
    version: str
    must: bool
    workers: int
    entry: str = ""


class Inheritance(msgspec.Struct, frozen=True):
    """The old daemon's resources for the new one.

    Attributes:
        control, inode: the control socket's descriptor, and the inode of its file.
        locks: descriptors of the locked files, of the control socket's and the state directory's.
        stand_in: a process known to a supervisor stands in for the daemon already.
    """

    endpoints: list[Bound]
    control: int
    inode: int
    locks: tuple[int, int]
    models: list[Expected]
    stand_in: bool = False
    form: int = FORM


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    done: int
    total: int


class ReadyToTakeOver(msgspec.Struct, frozen=True, tag="loaded"):
    """All expected models are ready."""

    version: str


class TakenOver(msgspec.Struct, frozen=True, tag="taken"):
    """The new daemon serves."""


class TakeoverFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The new daemon will not take over, and ends."""

    reason: str
    details: str = ""


class TakeOver(msgspec.Struct, frozen=True, omit_defaults=True, tag="yours"):
    """The new daemon shall take over.

    Attributes:
        counts: of the old daemon's metrics, as many as fit into `COUNTS` bytes; others follow.
    """

    counts: list[Totals] = []


FromNew = Progress | ReadyToTakeOver | TakenOver | TakeoverFailed
_FROM_NEW: msgspec.json.Decoder[FromNew] = msgspec.json.Decoder(FromNew)


class BrokenUpgradeMessage(Exception):
    """The other side sent an invalid message."""


def within(counts: Iterable[Totals], size: int) -> tuple[list[Totals], list[Totals]]:
    """Return the first counts, of at most `size` bytes when encoded, and the others."""
    fitting: list[Totals] = []
    rest: list[Totals] = []
    for each in counts:
        size -= len(encode(each))
        (fitting if size >= 0 else rest).append(each)
    return fitting, rest


def encode(word: msgspec.Struct) -> bytes:
    return json_bytes(word) + b"\n"


def decode(line: bytes, kind: type[T]) -> T:
    """Decode a line.

    Raises:
        BrokenUpgradeMessage: the line is no message of this kind.
    """
    return _decoded(line, msgspec.json.Decoder(kind))


def decode_from_new(line: bytes) -> FromNew:
    """Decode a line of the new daemon.

    Raises:
        BrokenUpgradeMessage: the line is no message of the new daemon.
    """
    return _decoded(line, _FROM_NEW)


def _decoded(line: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BrokenUpgradeMessage(f"{line[:80]!r}: {error}") from None


_LAST_TIME = 5.0  # seconds


class HungUp(Exception):
    """The other side has closed its end, or has ended."""


class Channel:
    """Lines to and from the other daemon; must be used on one loop.

    Args:
        sock: owned by the channel from now on.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._rest = b""
        self._speaking = asyncio.Lock()  # a long line may take several turns

    async def tell(self, word: msgspec.Struct) -> None:
        """Send a message. A short one is with the kernel when this returns.

        Raises:
            HungUp: the other side has closed its end.
        """
        try:
            async with self._speaking:
                await asyncio.get_running_loop().sock_sendall(self._socket, encode(word))
        except OSError:
            raise HungUp from None

    async def hear(self) -> bytes:
        """Receive a line.

        Raises:
            HungUp: the other side has closed its end, and all lines have been received.
            BrokenUpgradeMessage: the line exceeds `LONGEST` bytes.
        """
        while b"\n" not in self._rest:
            try:
                data = await asyncio.get_running_loop().sock_recv(self._socket, 65536)
            except (OSError, ValueError):  # reset, or closed by ourselves
                data = b""
            if not data:
                raise HungUp
            self._rest += data
            if len(self._rest) > LONGEST:
                raise BrokenUpgradeMessage("a line without an end")
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    async def hear_within(self, seconds: float) -> bytes:
        """Receive a line that the other side sends within some seconds, however late this side reads it.

        Raises:
            TimeoutError: no line was sent, and none can be any more: the other side finds this end closed.
            HungUp: as `hear`.
            BrokenUpgradeMessage: as `hear`.
        """
        hearing = asyncio.ensure_future(self.hear())
        try:
            done, _ = await asyncio.wait((hearing,), timeout=max(0.0, seconds))
            if done:
                return hearing.result()
            self._socket.shutdown(socket.SHUT_RD)  # a line sent before stays readable: unix(7)
            try:
                return await hearing
            except HungUp:
                raise TimeoutError from None
        finally:
            hearing.cancel()

    def tell_last(self, word: msgspec.Struct) -> None:
        """Send a message and close the channel; blocks, and needs no loop."""
        self._socket.settimeout(_LAST_TIME)
        with contextlib.suppress(OSError):
            self._socket.sendall(encode(word))
        self._socket.close()

    def close(self) -> None:
        self._socket.close()


def first_line(sock: socket.socket) -> bytes:
    """Read one line and nothing behind it, blocking; empty if the other side closes early or the line is too long."""
    line = bytearray()
    while not line.endswith(b"\n"):
        data = sock.recv(65536)
        if not data or len(line) > LONGEST:
            return b""
        line += data  # nothing follows the line before we answer
    return bytes(line)
