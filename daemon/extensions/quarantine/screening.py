"""Compare the jobs of one version with its suspects: when they arrive, and while they wait.

    arrives ─────────────────▶ compared at once ───────────────────▶ queued, or rejected
        └────── large ───────▶ parked ──▶ compared in a thread ────▶ admitted, or rejected
    waits as a worker ends ──▶ compared at once, or parked as above

The quarantine knows the suspects, and hashes (quarantine.py). Jobs without a suspect of their size do not come here.
"""

from collections.abc import Callable

from tsctl.daemon.batching.queue import Queue
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.quarantine.quarantine import Quarantine, Quarantined


class Screening:
    """The comparison of arriving and waiting jobs.

    Args:
        rejected: called for each job that a suspect's equal is refused for: a waiting one, to be taken out of the queue
            and answered.
        wake: called when a parked job was compared.
    """

    def __init__(
        self,
        queue: Queue,
        quarantine: Quarantine,
        rejected: Callable[[Job, Quarantined], None],
        wake: Callable[[], None],
    ) -> None:
        self._queue = queue
        self._quarantine = quarantine
        self._rejected = rejected
        self._wake = wake

    def arrived(self, job: Job, ahead: int) -> Quarantined | None:
        """Queue a job that is as large as a suspect: compared at once, or parked until compared.

        Returns why the job is rejected, and not queued; None if it is not rejected.

        Raises:
            QueueFull: a limit of the queue would be exceeded.
        """
        if not self._quarantine.compare_at_once(job):
            self._queue.park(job, ahead)
            self._quarantine.compare_aside(job, self.compared)
            return None
        refusal = self._quarantine.refusal(job)
        if refusal is None:
            self._queue.put(job, ahead)
        return refusal

    def compare_waiting(self, size: int) -> None:
        """Compare the waiting jobs of this size: a worker has ended with one that may be the same."""
        for job in self._queue.of_size(size):
            if job.apart is None:
                if not self._quarantine.compare_at_once(job):
                    if not job.attempt:  # otherwise it is already set to run alone
                        self._queue.withdraw(job)
                        self._quarantine.compare_aside(job, self.compared)
                    continue
                if not job.runs_alone:  # not `suspect`: compiled, that is still taken to be None
                    continue
            if not self._reject(job) and not job.attempt:
                self._queue.admit(job)

    def compared(self, job: Job) -> None:
        """Admit or reject a parked job that was compared, and has neither expired nor left."""
        if job in self._queue.parked:
            if not self._reject(job):
                self._queue.admit(job)
            self._wake()

    def _reject(self, job: Job) -> bool:
        """Reject a waiting job if the same request has ended workers; return whether that is so."""
        refusal = self._quarantine.refusal(job)
        if refusal is None:
            return False
        self._rejected(job, refusal)
        return True
