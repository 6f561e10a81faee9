"""The states of a version, as a client sees them."""

from enum import Enum

CRASHES = 3  # workers that ended in a row, without an answer between
CRASHING = "crashing"  # the state shown for a served version whose last workers ended like that
NOT_IN_MEMORY = "unloaded"  # the state shown for a version that a request, or `tsctl load`, brings back


class ModelState(Enum):
    """The states of a version."""

    UNLOADED = "no workers"  # no workers are wanted
    LOADING = "loading"  # workers are starting, none is ready
    READY = "ready"  # at least one worker is ready
    FAILED = "failed"  # every worker failed, and none is started again
    STOPPING = "stopping"  # the version is being unregistered
