"""A known client: the models that it may use, its rate of requests, and its refusals.

    ModelNotAllowed     403, the client's key does not allow the model
    TooManyRequests     429, the client sends more requests than its rate allows
    BodyTooLong         413, the body exceeds the client's own limit

The rate is limited by the virtual scheduling algorithm (ITU-T I.371, annex A), a token bucket in one number: `due` is
when the next request would come from a client that sends evenly at its rate. A request may come earlier than that by
the time that the rest of a burst takes.
"""

import math
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import unquote

from tsctl.daemon.core.errors import DaemonError, Forbidden
from tsctl.daemon.core.timing import duration


class ModelNotAllowed(Forbidden):
    """The client's key does not allow this model."""

    def __init__(self, client: str, model: str) -> None:
        super().__init__(f"The key of client `{client}` does not allow the model `{model}` (403).")


class TooManyRequests(DaemonError):
    """The client sends more requests than its rate allows."""

    status = 429
    kind = "TooManyRequestsException"

    def __init__(self, client: "KnownClient", wait: float) -> None:
        super().__init__(
            f"Client `{client.name}` may send {client.rate:g} requests a second, {client.burst} at once (429):"
            f" the next one in {duration(wait)}."
        )
        self.retry_after = max(1, math.ceil(wait))


class BodyTooLong(DaemonError):
    """The body exceeds the client's own limit."""

    status = 413
    kind = "RequestEntityTooLargeException"

    def __init__(self, client: "KnownClient", size: int) -> None:
        super().__init__(f"The body has {size} bytes; client `{client.name}` may send {client.bytes} (413).")


def share_holder(client: "KnownClient | None", peer: str) -> str:
    """Return the name under which a client's share is counted: that of the key, else the address without the port."""
    return f"key {client.name}" if client is not None else unquote(peer.rpartition(":")[0]).strip("[]")


@dataclass(slots=True)
class KnownClient:
    """A client that is known by its key.

    Attributes:
        models: patterns of the names of models that the client may use, as in file names; None for all.
        rate: predictions a second; 0.0 for no limit.
        burst: predictions that may come at once, at least 1; without effect if there is no rate.
        low_priority: all its requests have low priority, whatever they ask for.
        bytes: the most bytes of a body; 0 for the daemon's own limit.
        due: when the next request is due at an even rate, seconds on the daemon's clock.
    """

    name: str
    models: tuple[str, ...] | None = None
    rate: float = 0.0
    burst: int = 1
    low_priority: bool = False
    bytes: int = 0
    due: float = field(default=0.0, compare=False)

    def may_use(self, model: str) -> bool:
        """Return whether the client's key allows a model."""
        return self.models is None or any(fnmatchcase(model, pattern) for pattern in self.models)

    def wait(self, now: float) -> float:
        """Return the seconds until the client may send a request; 0.0 for now."""
        if not self.rate:
            return 0.0
        return max(0.0, self.due - (self.burst - 1) / self.rate - now)

    def check_model(self, model: str) -> None:
        """Raise ModelNotAllowed if the client's key does not allow a model."""
        if not self.may_use(model):
            raise ModelNotAllowed(self.name, model)

    def check_size(self, size: int) -> None:
        """Raise BodyTooLong if the client may not send so many bytes."""
        if self.bytes and size > self.bytes:
            raise BodyTooLong(self, size)

    def check_rate(self, now: float) -> None:
        """Raise TooManyRequests if a request would come too early; count nothing."""
        wait = self.wait(now)
        if wait > 0.0:
            raise TooManyRequests(self, wait)

    def admit(self, model: str, size: int, now: float) -> None:
        """Count a request of the client.

        Raises:
            ModelNotAllowed: the client's key does not allow the model.
            BodyTooLong: the client may not send so many bytes.
            TooManyRequests: the request comes too early; it does not count.
        """
        self.check_model(model)
        self.check_size(size)
        self.check_rate(now)
        if self.rate:
            self.due = max(self.due, now) + 1 / self.rate
