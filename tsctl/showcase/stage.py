"""The objects that every scene of the demo works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tsctl.client import DaemonClient
from tsctl.errors import CliError
from tsctl.showcase.facts import ShowcaseFacts

SERVED = Path(__file__).parent / "served"
MODEL = "digits"


@dataclass
class Stage:
    """The daemon, the facts and the clock of one run.

    Attributes:
        folder: the daemon's.
        body: of every request: the digit.
        archive: of the model.
        now: seconds since the beginning of the demo.
        failures: the kinds of failed requests, with their counts.
    """

    client: DaemonClient
    folder: Path
    facts: ShowcaseFacts
    body: bytes
    archive: Path
    now: Callable[[], float]
    failures: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise if a request failed.

        Raises:
            CliError: requests failed; the message counts them by kind.
        """
        if self.facts.failed or self.failures:
            found = ", ".join(self.failures)
            raise CliError(f"{self.facts.failed} of {self.facts.ended} requests failed: {found}")
