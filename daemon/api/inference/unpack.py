"""Bodies with a `Content-Encoding`: unpacked before their request is routed, and refused if the coding is unknown.

A body is unpacked in steps: counted as it grows, and refused at the first byte too many. Most take one step; the others
are unpacked in turns, as large forms are read. Behind that, the request is as one that came unpacked.
"""

import zlib
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tsctl.daemon.api.inference.turns import Reading, Turns
from tsctl.daemon.core.arena import Gathered, Take
from tsctl.daemon.core.errors import BadRequest, DaemonError
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import BodyTooLarge
from tsctl.daemon.http.messages import Request

STEP: Final = 256 * 1024  # unpacked bytes at a time: 0.6 ms (2-core Xeon VM)
_MEMBER: Final = 4096  # bytes that are unpacked in the time in which zlib is made ready
_FED: Final = 64 * 1024  # packed bytes at a time: zlib copies what it does not use
# An image written as numbers has 3 to 8 times the bytes of its gzip, a tensor of one number repeated a thousand times.
# So any ratio is read up to some MiB, and beyond them one that only a few repeated numbers have, or none.
MOST_RATIO: Final = 100  # unpacked bytes for each packed one, beyond ANY_RATIO
ANY_RATIO: Final = 8 * 1024 * 1024  # unpacked bytes
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}  # of zlib
_NONE = ("", "identity")
UNDERSTOOD: Final = "gzip, deflate"


class UnknownCoding(DaemonError):
    """The body comes in a coding that the daemon does not unpack.

    Args:
        coding: as the client named it.
    """

    status = 415
    kind = "BadRequestException"
    headers = (("Accept-Encoding", UNDERSTOOD),)

    def __init__(self, coding: str) -> None:
        super().__init__(
            f"Content-Encoding is `{coding[:100]}`; gzip and deflate are understood, one of them at a time."
            " Send the body in one of these, or as it is, without the header."
        )


class Unpacked:
    """The unpacked bytes of one body, which count as received until `end`."""

    def __init__(self, budget: ReceiveBudget) -> None:
        self._budget = budget
        self.counted = 0

    def count(self, size: int) -> None:
        """Count so many bytes more. Raise NoRoom if the budget is spent."""
        self.counted += size
        if not self._budget.count_bytes(size):
            raise self._budget.refuse()

    def end(self) -> None:
        counted, self.counted = self.counted, 0
        if counted:
            self._budget.free(counted)


class Unpacking:
    """Unpacks bodies for the routes of an address.

    Args:
        turns: unpacks large bodies.
        receiving: the budget in which unpacked bytes count until the body is complete.
        take: for unpacked bytes; None for no arena.
        most: bytes of a body, unpacked.
    """

    def __init__(self, turns: Turns, receiving: ReceiveBudget, take: Take | None, most: int) -> None:
        self._turns = turns
        self._receiving = receiving
        self._take = take
        self._most = most

    def __call__(self, exchange: Exchange, then: Callable[[Exchange], None]) -> Coroutine[Any, Any, None] | None:
        """Unpack the body of a request with a coding, and call `then`; return a coroutine if that takes several steps.

        Raises:
            UnknownCoding: the daemon does not unpack the coding.
            DaemonError: as `unpack_steps`, and `Turns.read` in the coroutine.
        """
        request = exchange.request
        unpacked = Unpacked(self._receiving)
        reading = Reading(unpack_steps(request, self._most, unpacked, self._take))
        try:
            whole = reading.advance()
        except DaemonError:
            unpacked.end()
            raise
        if not whole:
            return self._go_on(exchange, reading, unpacked, then)
        unpacked.end()
        then(exchange)
        return None

    async def _go_on(
        self, exchange: Exchange, reading: Reading[None], unpacked: Unpacked, then: Callable[[Exchange], None]
    ) -> None:
        try:
            waits = await self._turns.read_whole(reading, exchange, 0.0)
        finally:
            unpacked.end()
        if waits:
            then(exchange)


def unpack_steps(request: Request, most: int, unpacked: Unpacked, take: Take | None = None) -> Steps[None]:
    """Replace a compressed body by what is in it, and its headers by those of that.

    Args:
        most: bytes of a body.
        take: returns a place in the arena for the body, as in `Gathered`.

    Raises:
        UnknownCoding: the daemon does not unpack the coding.
        BadRequest: the body is not in its coding.
        BodyTooLarge: there are more than `most` bytes, or more than such a body may have for its size.
        NoRoom: the bodies that are being received leave no room.
    """
    coding, body = (request.coding or "").strip().lower(), request.body
    if coding in _NONE or not len(body):
        request.coding = None
        return
    if coding not in _WINDOWS:
        raise UnknownCoding(coding)
    view = memoryview(body) if isinstance(body, bytes) else body.view
    ratio = max(ANY_RATIO, MOST_RATIO * len(view))
    limit = min(most, ratio)
    reader = zlib.decompressobj(_WINDOWS[coding])
    # The last bytes of gzip are the size of what is in it, or a lie.
    told = int.from_bytes(view[-4:], "little") if coding != "deflate" else limit
    gathered = Gathered(take, min(told, limit))
    at = done = 0
    while not reader.eof:
        fed: bytes | memoryview = reader.unconsumed_tail
        if not fed:
            fed = view[at : at + _FED]
            at += len(fed)
        try:
            piece = reader.decompress(fed, min(STEP, limit + 1 - gathered.size))
        except zlib.error as error:
            raise BadRequest(f"The body is not {coding}: {error}") from None
        if not piece and not fed:
            raise BadRequest(f"The body ends within its {coding} data.")
        size = gathered.size + len(piece)
        if size > limit:
            what = "a decompressed body" if limit == most else f"what {len(view)} bytes of {coding} unpack to"
            raise BodyTooLarge(what, size, limit)
        if piece:
            unpacked.count(len(piece))
            gathered.add_piece(piece)
        if reader.eof and at - len(reader.unused_data) < len(view):  # gzip may go on after its end, as `cat` makes it
            if coding == "deflate":
                raise BadRequest("The body goes on after its deflate data.")
            at -= len(reader.unused_data)
            reader = zlib.decompressobj(_WINDOWS[coding])
            done += _MEMBER
        done += max(len(piece), len(fed))
        if done >= STEP and not reader.eof:
            done = 0
            yield
    request.body, request.coding = gathered.payload(), None
    request.headers = [
        (name, str(gathered.size) if name.lower() == "content-length" else value)
        for name, value in request.headers
        if name.lower() != "content-encoding"
    ]
