"""The errors of `tsctl.Client`, `tsctl.AsyncClient` and `tsctl.serve`.

    TsctlError
    ├─ CannotConnect        no daemon listens there, or this user may not connect: nothing was sent
    ├─ ConnectionLost       the connection broke: the request may have been run, and is not repeated
    ├─ DeadlineExceeded     the deadline passed, here or in the daemon (504); a TimeoutError, too
    ├─ UnreadableAnswer     the answer is not HTTP, or not of the type that its header names
    ├─ ErrorAnswer          an answer with a status of 400 or more
    │  └─ Overloaded        503 with `Retry-After`, for longer than the call had time
    └─ ServeFailed          `serve` could not start its daemon, or the target cannot be served

Wrong arguments are TypeError and ValueError.
"""


class TsctlError(Exception):
    """The base class of all errors here."""


class CannotConnect(TsctlError):
    """No daemon listens at the address, or this user may not connect."""


class ConnectionLost(TsctlError):
    """The connection broke before the answer was complete; the request may have been run."""


class UnreadableAnswer(TsctlError):
    """The answer is not HTTP, or not of the type that its header names."""


class DeadlineExceeded(TsctlError, TimeoutError):
    """The deadline passed before the answer.

    Attributes:
        request_id: of the daemon's 504; empty if the time ran out here.
    """

    def __init__(self, message: str, request_id: str = "") -> None:
        super().__init__(message)
        self.request_id = request_id


class ErrorAnswer(TsctlError):
    """An answer with a status of 400 or more.

    Attributes:
        status: the HTTP status.
        message: the daemon's message; if the handler answered by itself, the body as text.
        kind: the daemon's `type`, such as `ModelNotFoundException`; empty if the handler answered by itself.
        request_id: the answer's `x-request-id`, as in the daemon's log; empty if there is none.
        body: the answer as received.
    """

    def __init__(self, status: int, message: str, kind: str = "", request_id: str = "", body: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.request_id = request_id
        self.body = body

    def __str__(self) -> str:
        more = f", request {self.request_id}" if self.request_id and self.request_id not in self.message else ""
        return f"{self.message} (status {self.status}{more})"


class Overloaded(ErrorAnswer):
    """503 with `Retry-After`, for longer than the call had time.

    Attributes:
        retry_after: seconds, as in the last answer.
    """

    retry_after: float = 0.0


class ServeFailed(TsctlError):
    """`serve` could not start its daemon, or the target cannot be served."""
