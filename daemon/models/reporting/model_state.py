"""The states of a version, as a client sees them, and the words for them.

    stopped   ready workers   wanted workers   all have failed   state
    -------   -------------   --------------   ---------------   --------
    yes       any             any              either            STOPPING
    no        ≥ 1             any              either            READY
    no        0               0                -                 UNLOADED
    no        0               ≥ 1              no                LOADING
    no        0               ≥ 1              yes               FAILED

A worker that has failed is one that is not started again (workers/slot.py).
"""

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


def word_of(state: ModelState, crashing: bool, absence: str) -> str:
    """Return a state in a word, for people.

    Args:
        crashing: the last workers ended by themselves, one after the other, while they ran requests.
        absence: the word where no workers are wanted.
    """
    if crashing and (state is ModelState.READY or state is ModelState.LOADING):
        return CRASHING
    return absence if state is ModelState.UNLOADED else str(state.value)
