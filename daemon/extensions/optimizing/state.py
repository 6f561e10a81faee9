"""The trial of one version.

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

from enum import Enum

from tsctl.daemon.core.states import follow


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


def advance(state: TrialState, event: TrialEvent) -> TrialState:
    """Return the next state, by one arrow of the drawing.

    Raises:
        IllegalTransition: there is no such arrow.
    """
    return follow(TRANSITIONS, state, event)
