"""The steps of an upgrade, as the old daemon takes them.

    SERVING ──asked──▶ CHECKING ──fits──▶ LOADING ──loaded──▶ HANDING ──taken──▶ DRAINING
     ▲   │                 │                 │                   │                  │
     └───┼─────failed──────┴─────────────────┴───────────────────┘         stopped, │ finished
         └─────stopped─────┴─────────────────┴──▶ STOPPING ◀────────────────────────┘

Until HANDING the old daemon is the daemon, whatever becomes of the new one. In HANDING it has given
its place away and not yet heard that it was taken: the new one is killed, and seen to be dead,
before the old one says that it carries on, so there are never two. A signal to stop waits there
until it is known who the daemon is. From DRAINING on it is the new one, and no arrow leads back.
"""

from enum import Enum, auto


class Step(Enum):
    SERVING = auto()  # no upgrade is under way
    CHECKING = auto()  # changes are refused; those begun are finished; memory is counted
    LOADING = auto()  # a new daemon loads what this one serves
    HANDING = auto()  # it was told that the place is its own, and has not said that it took it
    DRAINING = auto()  # it serves; this one answers who is still connected to it
    STOPPING = auto()  # nothing more is accepted


class Event(Enum):
    ASKED = auto()
    FITS = auto()
    LOADED = auto()
    TAKEN = auto()
    FAILED = auto()
    STOPPED = auto()
    FINISHED = auto()  # nobody is connected any more


TRANSITIONS: dict[Step, dict[Event, Step]] = {
    Step.SERVING: {Event.ASKED: Step.CHECKING, Event.STOPPED: Step.STOPPING},
    Step.CHECKING: {Event.FITS: Step.LOADING, Event.FAILED: Step.SERVING, Event.STOPPED: Step.STOPPING},
    Step.LOADING: {Event.LOADED: Step.HANDING, Event.FAILED: Step.SERVING, Event.STOPPED: Step.STOPPING},
    Step.HANDING: {Event.TAKEN: Step.DRAINING, Event.FAILED: Step.SERVING},
    Step.DRAINING: {Event.STOPPED: Step.STOPPING, Event.FINISHED: Step.STOPPING},
    Step.STOPPING: {},
}


class IllegalTransition(Exception):
    """An upgrade was moved along an arrow that does not exist: a bug."""


def advance(step: Step, event: Event) -> Step:
    """Follow one arrow of the drawing.

    Raises:
        IllegalTransition: there is no such arrow.
    """
    try:
        return TRANSITIONS[step][event]
    except KeyError:
        raise IllegalTransition(f"{event.name} in {step.name}") from None


def stops_successor(step: Step, *, supervised: bool) -> bool:
    """Whether a signal to stop this process is meant for the new daemon, too.

    Args:
        step: in which the signal came.
        supervised: whoever started the daemon in the foreground knows this process, and not the new one.
    """
    return step is Step.HANDING or (step is Step.DRAINING and supervised)


class Drain(Enum):
    WAIT = auto()  # for requests on connections that are open
    CLOSE_IDLE = auto()  # what is asked is answered, and nothing more
    OVER = auto()


def drain(busy: bool, since: float, grace: float, now: float) -> Drain:
    """Say what becomes of the connections of a daemon that has been replaced.

    Args:
        busy: somebody is connected.
        since: when it was replaced; `now` is on the same clock.
        grace: seconds that connections stay open on which nothing is asked.
    """
    if not busy:
        return Drain.OVER
    return Drain.WAIT if now < since + grace else Drain.CLOSE_IDLE
