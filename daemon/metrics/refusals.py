"""The reasons for which requests are refused before they are run, as labels."""

from daemon.core.errors import DaemonError

OTHER = "other"
# By the error's name: some are defined in rooms above this one.
REASONS: dict[str, str] = {
    "QueueFull": "queue_full",
    "NoReadyWorker": "no_worker",
    "Loading": "loading",
    "Stopping": "stopping",
    "Quarantined": "quarantined",
    "BadRequest": "invalid",
    "TooManyRequests": "client_rate",
}


def reason_of(error: DaemonError) -> str:
    """Return the reason, one of `REASONS` or `OTHER`; that of a subclass is its nearest base's."""
    return next((REASONS[each.__name__] for each in type(error).__mro__ if each.__name__ in REASONS), OTHER)
