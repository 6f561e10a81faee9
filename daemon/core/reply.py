"""The answer to a job, whole or in pieces."""

from collections.abc import Sequence
from typing import Protocol


# Plain classes: compiled, they are C structures, and reading an attribute of one is no look-up.
class Reply:
    """The answer to one job; not changed once it is made.

    Args:
        status: HTTP status, 200 unless the handler or an error chose another.
        error: TorchServe's `type` word if this is an error, and `body` its message; else empty.
        retry_after: seconds.
        traceback: of the handler's exception, for operators; never part of the answer.
    """

    def __init__(
        self,
        status: int,
        body: bytes,
        phrase: str = "",
        headers: Sequence[tuple[str, str]] = (),
        error: str = "",
        retry_after: int | None = None,
        traceback: str = "",
    ) -> None:
        self.status = status
        self.body = body
        self.phrase = phrase
        self.headers = headers
        self.error = error
        self.retry_after = retry_after
        self.traceback = traceback

    def __repr__(self) -> str:
        return f"<Reply {self.status} {self.error} {self.body!r}>"

    def with_headers(self, headers: Sequence[tuple[str, str]]) -> "Reply":
        """Return the same reply with other headers."""
        return Reply(self.status, self.body, self.phrase, headers, self.error, self.retry_after, self.traceback)


class Flow(Protocol):
    """The source of one answer's pieces, which produces no more than the client reads.

    Attributes:
        wanted: a client waits for the pieces; set by the receiver of one.
    """

    wanted: bool

    def drained(self) -> None:
        """Note that all pieces so far have been written."""

    def refuse(self) -> None:
        """Note that further pieces are not wanted."""


class Piece(Reply):
    """A piece of an answer that is not complete yet.

    Args:
        unread: empty, or why the answer ends here: its client does not read.
    """

    def __init__(
        self,
        status: int,
        body: bytes,
        phrase: str = "",
        headers: Sequence[tuple[str, str]] = (),
        error: str = "",
        flow: Flow | None = None,
        unread: str = "",
    ) -> None:
        super().__init__(status, body, phrase, headers, error)
        self.flow = flow
        self.unread = unread

    def with_headers(self, headers: Sequence[tuple[str, str]]) -> "Piece":
        return Piece(self.status, self.body, self.phrase, headers, self.error, self.flow, self.unread)
