"""A known client: the models that it may use, and its rate of requests.

The rate is limited by the virtual scheduling algorithm (ITU-T I.371, annex A), a token bucket in one number: `due` is
when the next request would come from a client that sends evenly at its rate. A request may come earlier than that by
the time that the rest of a burst takes.
"""

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tsctl.daemon.core.client import BodyTooLong, ModelNotAllowed, TooManyRequests


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

    @property
    def holder(self) -> str:
        """The name under which the client's share is counted."""
        return f"key {self.name}"

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
            raise BodyTooLong(self.name, self.bytes, size)

    def check_rate(self, now: float) -> None:
        """Raise TooManyRequests if a request would come too early; count nothing."""
        wait = self.wait(now)
        if wait > 0.0:
            raise TooManyRequests(self.name, self.rate, self.burst, wait)

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
