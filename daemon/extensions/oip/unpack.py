"""Decompression of a request's body, in steps: counted as it grows, and refused at the first byte too many."""

import zlib
from typing import Final

from tsctl.daemon.api.tensors.steps import Steps
from tsctl.daemon.core.arena import Gathered, Take
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.http.bounds.receiving import ReceiveBudget, Waiting
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.parsing.sizes import BodyTooLarge

STEP: Final = 256 * 1024  # unpacked bytes at a time: 0.6 ms (2-core Xeon VM)
_FED: Final = 64 * 1024  # packed bytes at a time: zlib copies what it does not use
# An image written as numbers has 3 to 8 times the bytes of its gzip, a tensor of one number repeated a thousand times.
# So any ratio is read up to some MiB, and beyond them one that only a few repeated numbers have, or none.
MOST_RATIO: Final = 100  # unpacked bytes for each packed one, beyond ANY_RATIO
ANY_RATIO: Final = 8 * 1024 * 1024  # unpacked bytes
_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}  # of zlib, by the coding's name


class Unpacked(Waiting):
    """The unpacked bytes of one body, which count as received until `end`."""

    def __init__(self, budget: ReceiveBudget) -> None:
        self._budget = budget
        self.counted = 0

    def count(self, size: int) -> None:
        """Count so many bytes more. Raise NoRoom if the budget is spent."""
        self.counted += size
        if not self._budget.add(size):
            raise self._budget.refuse()

    def end(self) -> None:
        """Release the bytes."""
        counted, self.counted = self.counted, 0
        if counted:
            self._budget.free(counted, self)

    def go_on(self, granted: int) -> None:
        raise NotImplementedError  # it does not wait


def is_packed(request: Request) -> bool:
    return request.header("content-encoding").strip().lower() not in ("", "identity")


def unpack_steps(request: Request, most: int, unpacked: Unpacked, take: Take | None = None) -> Steps[None]:
    """Replace a compressed body by what is in it.

    Args:
        most: bytes of a body.
        take: returns a place in the arena for the body, as in `Gathered`.

    Raises:
        BadRequest: the coding is unknown, or the body is not in it.
        BodyTooLarge: there are more than `most` bytes, or more than such a body may have for its size.
        NoRoom: the bodies that are being received leave no room.
    """
    coding = request.header("content-encoding").strip().lower()
    if coding not in _WINDOWS:
        raise BadRequest(f"Content-Encoding is `{coding[:100]}`; expected gzip, deflate, or none.")
    body = request.body
    view = memoryview(body) if isinstance(body, bytes) else body.view
    ratio = max(ANY_RATIO, MOST_RATIO * len(view))
    limit = min(most, ratio)
    reader = zlib.decompressobj(_WINDOWS[coding])
    # The last bytes of gzip are the size of what is in it, or a lie.
    told = int.from_bytes(view[-4:], "little") if coding == "gzip" else limit
    gathered = Gathered(take, min(told, limit))
    at = 0
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
            gathered.add(piece)
        if not reader.eof:
            yield
    request.body = gathered.end()
