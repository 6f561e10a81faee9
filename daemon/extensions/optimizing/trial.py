"""The trial of one version, from its load to its end.

    OFF                                                  a reason why there is none, for as long as the version is there

    WAITING ──begin──▶ TRYING ──choose──▶ SWITCHING ──switched──▶ (the version that takes over begins as CHOSEN)
       ▲                 │ │                  └──fail──▶ FAILED
       │                 │ └──keep──▶ KEPT
       ├──break off──────┤
       └──fail, again────┴──fail──▶ FAILED

    CHOSEN ──lost──▶ WAITING      CHOSEN ──fail──▶ FAILED      after the last attempt

A version begins where its record ends: CHOSEN, KEPT or FAILED; or WAITING, without one. `break off` ends a trial that
is not to blame: its model is removed or replaced, or the daemon stops or is upgraded; then it does not count. After a
failure the next attempt waits, and after the last one none follows. `lost`: the workers report that they could not be
loaded with the chosen set, for example because compiled code was deleted.
"""

from collections.abc import Sequence
from enum import Enum

from tsctl.daemon.core.states import follow
from tsctl.daemon.extensions.optimizing.due import ATTEMPTS
from tsctl.daemon.extensions.optimizing.record import TrialFacts, TrialRecord
from tsctl.handlers.names import AUTO


class TrialState(Enum):
    OFF = "off"  # no trial is made of the version
    WAITING = "pending"  # a trial will begin
    TRYING = "running"  # the trial's process runs
    SWITCHING = "taking over"  # workers with the chosen set are loading beside those that serve
    CHOSEN = "chosen"  # the workers were started with the set that a trial has found
    KEPT = "nothing faster"  # a trial has found nothing faster
    FAILED = "failed"  # no further attempt


class TrialEvent(Enum):
    BEGIN = "begin"
    CHOOSE = "choose"
    KEEP = "keep"
    SWITCHED = "switched"
    FAIL = "fail"
    AGAIN = "again"
    BREAK_OFF = "break off"
    LOST = "lost"


TRANSITIONS: dict[TrialState, dict[TrialEvent, TrialState]] = {
    TrialState.OFF: {},
    TrialState.WAITING: {TrialEvent.BEGIN: TrialState.TRYING},
    TrialState.TRYING: {
        TrialEvent.CHOOSE: TrialState.SWITCHING,
        TrialEvent.KEEP: TrialState.KEPT,
        TrialEvent.FAIL: TrialState.FAILED,
        TrialEvent.AGAIN: TrialState.WAITING,
        TrialEvent.BREAK_OFF: TrialState.WAITING,
    },
    TrialState.SWITCHING: {TrialEvent.SWITCHED: TrialState.CHOSEN, TrialEvent.FAIL: TrialState.FAILED},
    TrialState.CHOSEN: {TrialEvent.LOST: TrialState.WAITING, TrialEvent.FAIL: TrialState.FAILED},
    TrialState.KEPT: {},
    TrialState.FAILED: {},
}


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
        self.state = follow(TRANSITIONS, self.state, event)
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
