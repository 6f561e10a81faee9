"""Health checks and predictions of a version, by the states of its workers.

    ready   wanted   its workers                                       /ping   /ready   a prediction
    ------  -------  ------------------------------------------------  ------  -------  ---------------------
    ≥ 1     any      others load, have ended or have failed              200      200   runs
    0       0        none yet, or scaled to none                         200      503   503 NoReadyWorker
    0       ≥ 1      load, as the last command asked                     200      503   waits
    0       ≥ 1      ended while they ran a request, are replaced        200      503   waits
    0       ≥ 1      ended by themselves, are replaced                   500      503   waits
    0       ≥ 1      have failed, and none is started again              500      503   503 NoReadyWorker

`/ping` asks whether a load balancer should take this daemon away from all clients, so it is 200 wherever that would not
help: while an operator's command is being carried out, and while one client's request has ended a worker. TorchServe is
unhealthy while any worker is missing, and healthy for five minutes after all have failed.
"""

from tsctl.daemon.workers.pool import Pool


def is_healthy(pool: Pool, *, coming_up: bool) -> bool:
    """Return whether a version with this pool lets `/ping` be 200.

    Args:
        coming_up: no worker has been ready since the last command that changed the number of workers, or retried.
    """
    if pool.ready or not pool.wanted:
        return True
    return not pool.hopeless and (coming_up or bool(pool.recovering))
