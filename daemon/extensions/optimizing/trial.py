"""The trial of one version, from its load to its end."""

from collections.abc import Sequence

from tsctl.daemon.extensions.optimizing.due import ATTEMPTS
from tsctl.daemon.extensions.optimizing.record import TrialFacts, TrialRecord
from tsctl.daemon.extensions.optimizing.state import TrialEvent, TrialState, advance
from tsctl.handlers.names import AUTO


class Trial:
    """The state of a version's trial, and the remembered result.

    Args:
        asked: whether `optimize: auto` was said.
        obstacle: why there is no trial; empty if there may be one.

    Attributes:
        record: of the trials with the facts of this version; None if there is none to be made.
        sets: to be tried, beside the plain model.
        waits: the event that a trial waits for, in words.
        since: since when it waits for a quiet moment only, on the daemon's clock; None before.
        again: when another attempt may begin, on the daemon's clock.
        look_again: when memory, or a request to repeat, is looked for again.
        progress: the present step of the running trial, in words.
    """

    def __init__(
        self,
        record: TrialRecord | None,
        sets: Sequence[Sequence[str]] = (),
        *,
        asked: bool,
        obstacle: str = "",
    ) -> None:
        self.asked = asked
        self.obstacle = obstacle
        self.record = record
        self.sets = sets
        self.state = _first_state(record)
        self.waits = self.progress = ""
        self.since: float | None = None
        self.again = self.look_again = 0.0

    def __repr__(self) -> str:
        return f"<Trial {self.state.name} {','.join(self.names or ())}>"

    @property
    def facts(self) -> TrialFacts:
        assert self.record is not None
        return self.record.facts

    @property
    def chosen(self) -> Sequence[str]:
        """The set that the workers were started with, beside the defaults."""
        return self.record.chosen if self.record is not None and self.state is TrialState.CHOSEN else ()

    @property
    def names(self) -> Sequence[str] | None:
        """The optimisations in a worker's order: `auto` and the chosen set; None for the defaults alone."""
        return (AUTO, *self.chosen) if self.chosen else None

    def note_progress(self, text: str) -> None:
        """Note the present step of the running trial."""
        self.progress = text

    def move(self, event: TrialEvent) -> None:
        self.state = advance(self.state, event)
        if self.state is not TrialState.WAITING:
            self.waits, self.since = "", None
        if self.state is not TrialState.TRYING:
            self.progress = ""


def _first_state(record: TrialRecord | None) -> TrialState:
    if record is None:
        return TrialState.OFF
    if record.ended:
        return TrialState.CHOSEN if record.chosen else TrialState.KEPT
    return TrialState.FAILED if record.attempts >= ATTEMPTS else TrialState.WAITING
