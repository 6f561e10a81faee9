"""Receivers side by side: whether a head was known again, or a body received in place, no request tells.

Four of them read the same stream: with and without heads that are known again, with and without an arena.
"""

from collections.abc import Sequence

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.http.connection import READ_SIZE
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.parsing.parser import Receiver
from tsctl.daemon.http.states.receiver import CLOSED

Told = tuple[str, str, list[tuple[str, str]], bytes, bool, bool, str | None, str | None]

UNKNOWN = "-"  # the method of a head that is not complete
Said = tuple[list[tuple[Told, str, str]], int, str, bool, bool, tuple[str, ...]]


def told(request: Request) -> Told:
    """All that a request says, but for an id that is ours."""
    return (
        request.method, request.target, request.headers, bytes(request.body), request.http_1_0, request.keep_alive,
        request.budget, request.priority,
    )  # fmt: skip


def named(request: Request) -> str:
    """The id, if the client gave it."""
    return request.id if request.id == request.header("x-request-id") else "ours"


class Reading:
    """A receiver on a connection that goes on as long as one does.

    Args:
        compares: it may know a head again; else each is parsed.
        storage: where it receives large bodies in place.
    """

    def __init__(self, limits: HttpLimits, *, compares: bool, storage: Arena | None = None) -> None:
        self.told: list[tuple[Told, str, str]] = []
        self.ids: list[str] = []
        self.expected = 0
        self.refusal = ""
        on_head = None if compares else _ignore  # who asks for each head has each parsed
        self.receiver = Receiver(limits, lambda: 7.0, self._take, self._expect, storage, on_head)

    def _take(self, request: Request) -> None:
        self.told.append((told(request), named(request), request.content_type))
        self.ids.append(request.id)
        if not request.keep_alive:
            self.receiver.leave()

    def _expect(self) -> None:
        self.expected += 1

    def feed(self, piece: bytes) -> None:
        """Take bytes as a connection does: what belongs to a large body goes to its place."""
        receiver = self.receiver
        try:
            while piece and receiver.state != CLOSED:
                space = receiver.space()
                if space is None:
                    receiver.feed(memoryview(piece[:READ_SIZE]))
                    piece = piece[READ_SIZE:]
                else:
                    count = min(len(space), len(piece))
                    space[:count] = piece[:count]
                    receiver.filled(count)
                    piece = piece[count:]
        except DaemonError as error:
            self.refusal = f"{error.status} {error}"
            receiver.leave()

    @property
    def said(self) -> Said:
        receiver = self.receiver
        begun, closed = receiver.begun or receiver.cut_short, receiver.state == CLOSED
        return self.told, self.expected, self.refusal, begun, closed, self._so_far if begun else ()

    @property
    def _so_far(self) -> tuple[str, ...]:
        """What a refusal at this moment would be an answer to; an id of ours is not compared."""
        request = self.receiver.request_so_far()
        return request.method, request.target, str(request.keep_alive), request.id if len(request.id) < 36 else "ours"


def alike(said: Said, other: Said) -> bool:
    """Compare what two receivers say.

    Of a target that is cut off one may have seen more: a body received in place ends elsewhere among the pieces that
    are read, and of an invalid request line the parser tells what came in the pieces before.
    """
    (*most, so_far), (*others, other_so_far) = said, other
    if so_far[:1] == other_so_far[:1] == (UNKNOWN,):
        target, other_target = so_far[1], other_so_far[1]
        if not (target.startswith(other_target) or other_target.startswith(target)):
            return False
        so_far, other_so_far = so_far[2:], other_so_far[2:]
    return most == others and so_far == other_so_far


def _ignore(request: Request) -> None: ...


_ARENA = Arena(64 * 1024**2)  # one for all: what a receiver leaves is free again


def compare(pieces: Sequence[bytes], limits: HttpLimits) -> Reading:
    """Read the pieces in four ways, and raise if two of them differ after any piece; return one that compares."""
    readings = [
        Reading(limits, compares=compares, storage=storage)
        for compares in (True, False)
        for storage in (None, _ARENA)
    ]  # fmt: skip
    for number, piece in enumerate(pieces):
        for reading in readings:
            reading.feed(piece)
        first = readings[0].said
        for reading in readings[1:]:
            assert alike(reading.said, first), f"after piece {number}"
    for reading in readings:
        ours = [each for each, (_, name, _) in zip(reading.ids, reading.told, strict=True) if name == "ours"]
        assert len(set(ours)) == len(ours), "two requests have one id"
    return readings[0]
