"""Calls at once: so many in all, on one connection, and of the watchers of health."""

from tsctl.daemon.core.errors import DaemonError

CALLS = 1000  # or ten for each job that may wait for a version
SHARE = 4  # one connection may make this part of them
OPEN_CALLS = 100  # beside them: health checks
WATCHERS = 500  # of health, each a task that looks twice a second
WATCHERS_OF_ONE = 50  # on one connection


class TooManyCalls(DaemonError):
    """The limit of calls at once is reached."""

    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 1

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"Too many gRPC calls at once: the limit is {limit} (ten times --queue-jobs, at least {CALLS})."
            " Try again later."
        )


class TooManyWatchers(DaemonError):
    """The limit of watchers of health is reached."""

    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 1

    def __init__(self, limit: int, whose: str) -> None:
        super().__init__(f"Too many calls of Health/Watch: the limit is {limit} {whose}. Call Check instead.")


def calls_at_once(queue_jobs: int) -> int:
    """Return how many calls may run at once, where so many jobs may wait for one version."""
    return max(CALLS, 10 * queue_jobs)
