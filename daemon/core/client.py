"""A client that an extension knows, as by a key: what it may ask for, how often, and how it is told what it exceeds.

ModelNotAllowed     403, the client may not use the model
TooManyRequests     429, the client sends more requests than its rate allows
BodyTooLong         413, the body exceeds the client's own limit
"""

import math
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from tsctl.daemon.core.errors import DaemonError, Forbidden
from tsctl.daemon.core.timing import duration


class ModelNotAllowed(Forbidden):
    """The client's key does not allow this model."""

    def __init__(self, client: str, model: str) -> None:
        super().__init__(f"The key of client `{client}` does not allow the model `{model}` (403).")


class TooManyRequests(DaemonError):
    """The client sends more requests than its rate allows.

    Args:
        rate: requests a second.
        burst: requests at once.
        wait: seconds until the next one.
    """

    status = 429
    kind = "TooManyRequestsException"

    def __init__(self, client: str, rate: float, burst: int, wait: float) -> None:
        super().__init__(
            f"Client `{client}` may send {rate:g} request{'' if rate == 1 else 's'} a second, {burst} at once (429):"
            f" the next one in {duration(wait)}."
        )
        self.retry_after = max(1, math.ceil(wait))


class BodyTooLong(DaemonError):
    """The body exceeds the client's own limit; both are in bytes."""

    status = 413
    kind = "RequestEntityTooLargeException"

    def __init__(self, client: str, limit: int, size: int) -> None:
        super().__init__(f"The body has {size} bytes; client `{client}` may send {limit} (413).")


class LimitedClient(Protocol):
    """A client, and its limits.

    Attributes:
        name: under which its answers are counted.
        models: patterns of the names of models that the client may use; None for all.
        low_priority: all its requests have low priority, whatever they ask for.
    """

    name: str
    models: tuple[str, ...] | None
    low_priority: bool

    def may_use(self, model: str) -> bool:
        """Return whether the client may use a model."""

    def check_model(self, model: str) -> None:
        """Raise ModelNotAllowed if the client may not use a model."""

    def check_size(self, size: int) -> None:
        """Raise BodyTooLong if the client may not send so many bytes."""

    def check_rate(self, now: float) -> None:
        """Raise TooManyRequests if a request would come too early; count nothing."""

    def admit(self, model: str, size: int, now: float) -> None:
        """Count a request of the client.

        Raises:
            ModelNotAllowed: the client may not use the model.
            BodyTooLong: the client may not send so many bytes.
            TooManyRequests: the request comes too early; it does not count.
        """


class Clients(Protocol):
    """The clients that an extension knows."""

    def find(self, key: str) -> LimitedClient | None:
        """Return the client with this key; None if there is none."""


class ShareHolder(NamedTuple):
    """A client that has a share of what clients share: a known one by its name, else the address without the port."""

    name: str
    known: bool


NOBODY = ShareHolder("", known=False)


def holder_of(client: LimitedClient | None, peer: str) -> ShareHolder:
    """Return the client in whose share a request counts."""
    address = unquote(peer.rpartition(":")[0]).strip("[]")
    return ShareHolder(address, known=False) if client is None else ShareHolder(client.name, known=True)
