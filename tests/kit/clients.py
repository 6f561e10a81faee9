"""Clients that the daemon knows by their names as keys, with limits that need no clock and no file."""

from dataclasses import dataclass, field

from tsctl.daemon.core.client import BodyTooLong, LimitedClient, ModelNotAllowed, TooManyRequests


@dataclass
class FakeClient:
    """A client of `tsctl.daemon.core.client`.

    Attributes:
        models: names; None for all.
        most: requests that it may send; None for any number.
        bytes: of a body; 0 for any number.
    """

    name: str
    models: tuple[str, ...] | None = None
    low_priority: bool = False
    most: int | None = None
    bytes: int = 0
    taken: int = field(default=0, compare=False)

    def may_use(self, model: str) -> bool:
        return self.models is None or model in self.models

    def check_model(self, model: str) -> None:
        if not self.may_use(model):
            raise ModelNotAllowed(self.name, model)

    def check_size(self, size: int) -> None:
        if self.bytes and size > self.bytes:
            raise BodyTooLong(self.name, self.bytes, size)

    def check_rate(self, now: float) -> None:
        if self.most is not None and self.taken >= self.most:
            raise TooManyRequests(self.name, 1.0, self.most, 1.0)

    def admit(self, model: str, size: int, now: float) -> None:
        self.check_model(model)
        self.check_size(size)
        self.check_rate(now)
        self.taken += 1


class FakeClients:
    """Clients by their names."""

    def __init__(self, *clients: FakeClient) -> None:
        self._clients = {each.name: each for each in clients}

    def find(self, key: str) -> LimitedClient | None:
        return self._clients.get(key)

    def revoke(self, key: str) -> None:
        del self._clients[key]
