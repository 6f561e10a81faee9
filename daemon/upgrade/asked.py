"""What somebody asks for who wants the daemon replaced."""

from dataclasses import dataclass

GRACE = 30.0  # seconds
TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class Asked:
    """An upgrade that somebody asks for.

    Attributes:
        grace: seconds that the old daemon keeps connections on which nothing is asked.
        timeout: seconds in which the new one must be ready.
        python: the interpreter that runs it; None for the old one's own.
        check_memory: refuse it where both daemons do not fit.
    """

    grace: float = GRACE
    timeout: float = TIMEOUT
    python: str | None = None
    check_memory: bool = True
