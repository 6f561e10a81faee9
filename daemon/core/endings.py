"""How requests end, and whose doing that is: the one table of what counts for or against a version of a model.

    ending      the request …                                                               whose     verdict
    ANSWERED    was answered below 400                                                      model     good
    FAILED      was answered 500 or more: its handler failed, or its worker                 model     bad
    OVERDUE     had no time left by an operator's limit, or after the failure of a worker   model     bad
    REFUSED     was not run: the version has no room, or no worker                          model     bad
    REJECTED    was answered 400 to 499, or 501: its input, its key, its rate or its size           client    none
    GIVEN_UP    had no time left by its client's own deadline                               client    none
    LEFT        was cancelled, or its client left                                           client    none
    STOPPED     was refused or cut off because an operator stops the version                daemon    none

Rollouts, alerts, the recent errors of a version and the answers that a shadow's are compared with read this table, for
every protocol. The worker of a request that ended by its client's doing may go on; the end of that counts as ever
(`VersionMetrics.unheard`), so that a client hides nothing either. Readiness, restarts, autoscaling and what is learned
of batches read no endings but workers: their ends, and the times of batches that they have run to the end (`Fate`).
Arrivals are demand, however they end.
"""

from enum import IntEnum, auto

from tsctl.daemon.core.errors import DaemonError


class Whose(IntEnum):
    CLIENT = auto()
    MODEL = auto()
    DAEMON = auto()


class Ending(IntEnum):
    ANSWERED = auto()
    FAILED = auto()
    OVERDUE = auto()
    REFUSED = auto()
    REJECTED = auto()
    GIVEN_UP = auto()
    LEFT = auto()
    STOPPED = auto()


WHOSE: dict[Ending, Whose] = {
    Ending.ANSWERED: Whose.MODEL,
    Ending.FAILED: Whose.MODEL,
    Ending.OVERDUE: Whose.MODEL,
    Ending.REFUSED: Whose.MODEL,
    Ending.REJECTED: Whose.CLIENT,
    Ending.GIVEN_UP: Whose.CLIENT,
    Ending.LEFT: Whose.CLIENT,
    Ending.STOPPED: Whose.DAEMON,
}
_STOPPING = ("Stopping", "Upgrading")  # by the error's name, as that of its bases


def counts(ending: Ending) -> bool:
    """Return whether an ending counts for or against its version."""
    return WHOSE[ending] is Whose.MODEL


def ending_of_status(status: int) -> Ending:
    """Return the ending of a request that was answered with this status, by a handler or in its place."""
    if status < 400:
        return Ending.ANSWERED
    return Ending.FAILED if status >= 500 else Ending.REJECTED


def ending_of_refusal(error: DaemonError) -> Ending:
    """Return the ending of a request that was answered with this error, and not run."""
    if 400 <= error.status < 500 or error.status == 501:  # 501: the client asks for what is not served
        return Ending.REJECTED
    stopping = any(base.__name__ in _STOPPING for base in type(error).__mro__)
    return Ending.STOPPED if stopping else Ending.REFUSED


def ending_of_deadline(*, by_client: bool, failed: bool) -> Ending:
    """Return the ending of a request whose deadline has passed.

    Args:
        by_client: the deadline is the client's own, and an operator's limit allows more.
        failed: a worker has hung or ended with the request before.
    """
    return Ending.GIVEN_UP if by_client and not failed else Ending.OVERDUE
