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

from tsctl.daemon.workers.pool import Pool

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


def is_healthy(pool: Pool, *, coming_up: bool) -> bool:
    """Health checks and predictions of a version, by the states of its workers.

        ready   wanted   its workers                                       /ping   /ready   a prediction
        ------  -------  ------------------------------------------------  ------  -------  ---------------------
        ≥ 1     any      others load, have ended or have failed              200      200   runs
        0       0        none yet, or scaled to none                         200      503   503 NoReadyWorker
        0       ≥ 1      load, as the last command asked                     200      503   waits
        0       ≥ 1      ended while they ran a request, are replaced        200      503   waits
        0       ≥ 1      ended by themselves, are replaced                   500      503   waits
        0       ≥ 1      have failed, and none is started again              500      503   503 NoReadyWorker

    `/ping` asks whether a load balancer should take this daemon away from all clients, so it is 200 wherever that would
    not help: while an operator's command is being carried out, and while one client's request has ended a worker.
    TorchServe is unhealthy while any worker is missing, and healthy for five minutes after all have failed.

    Args:
        coming_up: no worker has been ready since the last command that changed the number of workers, or retried.
    """
    if pool.ready or not pool.wanted:
        return True
    return not pool.hopeless and (coming_up or bool(pool.recovering))
