"""The replies to jobs that no worker has answered."""

from tsctl.daemon.core.endings import Ending
from tsctl.daemon.core.errors import CutOff, DaemonError, WorkerDied, WorkerKilled
from tsctl.daemon.core.job import Fate, Outcome, Reply


def reply_of(error: DaemonError) -> Reply:
    return Reply(error.status, str(error).encode(), error=error.kind, retry_after=error.retry_after)


def reply_to_lost(outcome: Outcome, stopping: bool, refusal: str) -> tuple[Reply, Ending]:
    """Return the reply to a job whose worker has ended, and which may not run again; and how the job ends.

    Args:
        stopping: the model is being stopped.
        refusal: a sentence on why the same request is refused from now on; empty if it is not.
    """
    job = outcome.job
    if outcome.fate is Fate.STOPPED and stopping:
        return reply_of(CutOff(outcome.reason, job.id)), Ending.STOPPED
    again = " again" if job.attempt > 1 else ""
    kind = WorkerKilled if outcome.fate is Fate.KILLED else WorkerDied
    error = kind(f"The worker died{again} while it ran this request: {outcome.reason}. (Request {job.id})")
    if refusal:
        error = kind(f"{error} {refusal}")
    return reply_of(error), Ending.FAILED
