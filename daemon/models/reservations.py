"""The reservations of models: while a service has one, it alone changes which versions answer.

All that it changes until it lets go is one change for `tsctl rollback` (persistence/earlier.py).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tsctl.daemon.core.errors import DaemonError


class Reservation(NamedTuple):
    """A service's reservation of one model.

    Attributes:
        versions: those that must stay registered.
        refusal: the error of a command that would interfere; its text names the remedy.
    """

    versions: tuple[str, ...]
    refusal: DaemonError


class Reservations:
    """The reservations of all services.

    Attributes:
        services: each returns its reservation of a model; None without one.
    """

    def __init__(self) -> None:
        self.services: Sequence[Callable[[str], Reservation | None]] = ()

    def of(self, name: str) -> Reservation | None:
        """Return the reservation of a model; None without one."""
        for reserves in self.services:
            found = reserves(name)
            if found is not None:
                return found
        return None

    def check(self, name: str, version: str = "") -> None:
        """Check that a command may change which versions of a model answer.

        Args:
            version: the command only takes this version away; empty for any other change.

        Raises:
            DaemonError: the model is reserved, and the reservation needs the version.
        """
        found = self.of(name)
        if found is not None and (not version or version in found.versions):
            raise found.refusal
