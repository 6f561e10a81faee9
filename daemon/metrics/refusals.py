"""The reasons for which requests are refused before they are run, as labels."""

from tsctl.daemon.core.endings import Ending, ending_of_refusal
from tsctl.daemon.core.errors import DaemonError

OTHER, INVALID = "other", "invalid"
# By the error's name: some are defined in rooms above this one. Those of extensions say their label themselves.
REASONS: dict[str, str] = {
    "QueueFull": "queue_full",
    "NoReadyWorker": "no_worker",
    "Loading": "loading",
    "Stopping": "stopping",
    "BadRequest": INVALID,
    "TooManyRequests": "client_rate",
}


def reason_of(error: DaemonError) -> str:
    """Return the reason, one of `REASONS` or `OTHER`; that of a subclass is its nearest base's.

    Any other that is its client's doing, such as a key that does not allow the model, is `invalid`.
    """
    if error.refusal_label:
        return error.refusal_label
    for each in type(error).__mro__:
        if each.__name__ in REASONS:
            return REASONS[each.__name__]
    return INVALID if ending_of_refusal(error) is Ending.REJECTED else OTHER
