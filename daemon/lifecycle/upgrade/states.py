"""The steps of an upgrade, as the old daemon takes them.

    SERVING ──asked──▶ CHECKING ──fits──▶ LOADING ──loaded──▶ HANDING ──taken──▶ DRAINING
     ▲   │                 │                 │                   │                  │
     └───┼─────failed──────┴─────────────────┴───────────────────┘         stopped, │ finished
         └─────stopped─────┴─────────────────┴──▶ STOPPING ◀────────────────────────┘

Until HANDING the old daemon serves, whatever happens to the new one. In HANDING the old daemon has offered
the service and waits for the acceptance: on failure the new one is killed, and seen to be dead,
before the old one continues, so there are never two. A signal to stop waits
until HANDING has ended. From DRAINING on the new one is the daemon, and no arrow leads back.
"""

from enum import Enum, auto


class Step(Enum):
    SERVING = auto()  # no upgrade is in progress
    CHECKING = auto()  # changes are rejected; those begun are finished; memory is counted
    LOADING = auto()  # a new daemon loads the models that this one serves
    HANDING = auto()  # the new daemon was told to take over, and has not confirmed
    DRAINING = auto()  # the new daemon serves; this one answers its remaining clients
    STOPPING = auto()  # nothing more is accepted


class UpgradeEvent(Enum):
    ASKED = auto()
    FITS = auto()
    LOADED = auto()
    TAKEN = auto()
    FAILED = auto()
    STOPPED = auto()
    FINISHED = auto()  # no connection is left


TRANSITIONS: dict[Step, dict[UpgradeEvent, Step]] = {
    Step.SERVING: {UpgradeEvent.ASKED: Step.CHECKING, UpgradeEvent.STOPPED: Step.STOPPING},
    Step.CHECKING: {
        UpgradeEvent.FITS: Step.LOADING,
        UpgradeEvent.FAILED: Step.SERVING,
        UpgradeEvent.STOPPED: Step.STOPPING,
    },
    Step.LOADING: {
        UpgradeEvent.LOADED: Step.HANDING,
        UpgradeEvent.FAILED: Step.SERVING,
        UpgradeEvent.STOPPED: Step.STOPPING,
    },
    Step.HANDING: {UpgradeEvent.TAKEN: Step.DRAINING, UpgradeEvent.FAILED: Step.SERVING},
    Step.DRAINING: {UpgradeEvent.STOPPED: Step.STOPPING, UpgradeEvent.FINISHED: Step.STOPPING},
    Step.STOPPING: {},
}


def stops_successor(step: Step, *, supervised: bool) -> bool:
    """Return whether a signal to stop this process is meant for the new daemon, too.

    Args:
        step: in which the signal arrived.
        supervised: the supervisor that started the daemon in the foreground knows only this process.
    """
    return step is Step.HANDING or (step is Step.DRAINING and supervised)


class Drain(Enum):
    WAIT = auto()  # for requests on connections that are open
    CLOSE_IDLE = auto()  # pending requests are answered, and no more are accepted
    OVER = auto()


def drain(busy: bool, since: float, grace: float, now: float) -> Drain:
    """Return how to treat the connections of a daemon that has been replaced.

    Args:
        busy: there are connections.
        since: the time of the replacement; `now` is on the same clock.
        grace: seconds that idle connections stay open.
    """
    if not busy:
        return Drain.OVER
    return Drain.WAIT if now < since + grace else Drain.CLOSE_IDLE
