"""The facts that the demo has seen so far. Scenes write the facts, the screen shows them; nothing else is shown."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class MeasuredPace:
    """Requests answered by the clients at one batch size.

    Attributes:
        label: "in ones".
        per_second: so far; 0.0 at the beginning.
        batch: mean batch size of the run; 0.0 until its end.
    """

    label: str
    per_second: float = 0.0
    batch: float = 0.0


@dataclass
class Disturbance:
    """One thing that is done to the daemon under load.

    Attributes:
        text: "worker killed (kill -9)".
        at: seconds since the beginning of the demo.
        ended_before: requests that had been answered, or had failed, when it began.
        outcome: the processes before and after, "4711 → 4712"; empty while it goes on.
        seconds: until the model served again; None while it goes on.
    """

    text: str
    at: float
    ended_before: int
    outcome: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class ClassifiedPhotograph:
    """A photograph, and what the network found on it: names of classes with probabilities, the surest first."""

    file: Path
    classes: tuple[tuple[str, float], ...]


@dataclass
class ShowcaseFacts:
    """All facts of one run of the demo.

    Attributes:
        doing: the current activity; empty at the end.
        doing_since: seconds since the beginning.
        digit: 64 values from 0 to 16, row by row.
        about: the model, in a sentence.
        answer: what the model says about the digit; empty until it was asked.
        clients: how many ask at the same time.
        answered, failed: requests of the clients since the disturbances began.
        photograph: with its classes; None until then, and without its packages.
        lacks_photograph: the packages that one needs are not installed.
        finished: every scene has been played.
    """

    digit: bytes
    about: str
    clients: int
    doing: str = ""
    doing_since: float = 0.0
    answer: str = ""
    paces: list[MeasuredPace] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    answered: int = 0
    failed: int = 0
    counting: bool = False
    photograph: ClassifiedPhotograph | None = None
    lacks_photograph: bool = False
    finished: bool = False

    @property
    def ended(self) -> int:
        return self.answered + self.failed

    def do(self, activity: str, now: float) -> None:
        """Begin another activity, `now` seconds after the beginning."""
        self.doing = activity
        self.doing_since = now
