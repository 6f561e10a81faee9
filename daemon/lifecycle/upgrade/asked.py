"""The parameters of a requested upgrade."""

from dataclasses import dataclass

GRACE = 30.0  # seconds
TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A requested upgrade.

    Attributes:
        grace: seconds that the old daemon keeps idle connections.
        timeout: seconds in which the new daemon must be ready.
        python: the interpreter that runs the new daemon; None for the old one's own.
        check_memory: reject the upgrade where both daemons do not fit.
    """

    grace: float = GRACE
    timeout: float = TIMEOUT
    python: str | None = None
    check_memory: bool = True
