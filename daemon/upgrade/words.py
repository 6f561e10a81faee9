"""What the old and the new daemon say to each other: JSON, a line each, on a socketpair.

    old ── Inheritance ─────────────────▶ new    what it inherits, as numbers of descriptors
    old ◀─ Progress … ─────────────────── new
    old ◀─ Loaded, or Failed ──────────── new    it asks for the place
    old ── Yours ───────────────────────▶ new    nothing has changed since, and will not
    old ◀─ Taken ──────────────────────── new    it accepts connections, and now changes too

Closing the socket says that the other one is on its own. Either side may be of another version: a
field that one does not know is ignored, and a new form gets a new number.
"""

from typing import TypeVar

import msgspec

FORM = 1
LONGEST = 4 * 1024 * 1024  # bytes of a line: a traceback, or some thousand models

T = TypeVar("T")


class Bound(msgspec.Struct, frozen=True):
    """A TCP address that is listened on; `flag`, `host` and `port` as in Endpoint."""

    flag: str
    host: str
    port: int
    descriptor: int


class Expected(msgspec.Struct, frozen=True):
    """A version that the old daemon serves.

    Attributes:
        must: it has been ready, so the new one has to have it ready; else it is enough to have tried.
        workers: how many there are to be.
    """

    name: str
    version: str
    must: bool
    workers: int


class Inheritance(msgspec.Struct, frozen=True):
    """What the new daemon inherits.

    Attributes:
        control, inode: the control socket's descriptor, and the inode of its file.
        locks: descriptors of the locked files, of the control socket's and the state directory's.
        stand_in: a process that a supervisor knows stands in for the daemon already.
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


class Loaded(msgspec.Struct, frozen=True, tag="loaded"):
    """All that was expected is ready."""

    version: str


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """The new daemon serves."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The new daemon will not; it ends."""

    reason: str
    details: str = ""


class Yours(msgspec.Struct, frozen=True, tag="yours"):
    """The place is given away."""


FromNew = Progress | Loaded | Taken | Failed
_FROM_NEW: msgspec.json.Decoder[FromNew] = msgspec.json.Decoder(FromNew)


class BrokenWord(Exception):
    """The other side said something that is none of the above."""


def encode(word: msgspec.Struct) -> bytes:
    return msgspec.json.encode(word) + b"\n"


def decode(line: bytes, kind: type[T]) -> T:
    """Read a line.

    Raises:
        BrokenWord: it says something else.
    """
    return _decoded(line, msgspec.json.Decoder(kind))


def decode_from_new(line: bytes) -> FromNew:
    """Read a line of the new daemon. Raises as `decode`."""
    return _decoded(line, _FROM_NEW)


def _decoded(line: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BrokenWord(f"{line[:80]!r}: {error}") from None
