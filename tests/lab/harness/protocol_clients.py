"""Clients of other protocols than HTTP, at addresses of their own: `CLIENTS` in tests/extensions/NAME/crowds.py."""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from tests.kit.shelf import modules
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.verdict import Rules


class ProtocolClients(ABC):
    """The clients of one protocol.

    Attributes:
        address: HOST:PORT, at which the daemon serves it.
        options: say so to the daemon.
    """

    address: str
    options: tuple[str, ...]

    @abstractmethod
    def ask(self, crowd: Crowd, rules: Mapping[str, Rules]) -> None:
        """Add threads of honest clients, for models with these rules."""

    @abstractmethod
    def most_cut_off(self, ledger: Ledger) -> int:
        """Return how many of the honest clients' requests can have been cut off."""

    @abstractmethod
    def harm(self, crowd: Crowd, prey: str) -> None:
        """Add threads that do to a model what only a client of this protocol can."""

    @abstractmethod
    def well_formed(self, prey: str) -> Mapping[str, Callable[[random.Random], bytes]]:
        """Return what makes the bytes of a connection with one request, by name."""

    @abstractmethod
    def oversized(self, message: bytes) -> bytes:
        """Return the bytes of a request that says to be larger than anything may be."""


def all_protocol_clients() -> list[ProtocolClients]:
    """Return the clients of each protocol, at new addresses."""
    return [each.CLIENTS() for each in modules("crowds")]
