"""The dispatcher that keeps requests apart which may end their workers: the same request has done so before.

Such a job runs alone, and is refused after that has happened twice.
"""

from collections.abc import Callable, Sequence

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.batching.queue import Queue
from tsctl.daemon.core.job import Batch, Fate, Job, JobPhase, Outcome
from tsctl.daemon.extensions.quarantine.quarantine import Quarantine, Quarantined
from tsctl.daemon.workers.engine import Worker


class Screening:
    """Compare the jobs of one version with its suspects: when they arrive, and while they wait.

        arrives ─────────────────▶ compared at once ───────────────────▶ queued, or rejected
            └────── large ───────▶ parked ──▶ compared in a thread ────▶ admitted, or rejected
        waits as a worker ends ──▶ compared at once, or parked as above

    The quarantine knows the suspects, and hashes (quarantine.py). Jobs without a suspect of their size do not come
    here.

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


class QuarantineDispatcher(Dispatcher):
    """As `Dispatcher`; `watch_for_suspects` must be called before the first job.

    Attributes:
        quarantine: knows which jobs may end their workers.
    """

    def watch_for_suspects(self, quarantine: Quarantine) -> None:
        self.quarantine = quarantine
        self._screening = Screening(self._queue, quarantine, self._reject, self.wake)

    @property
    def withholds(self) -> bool:
        return self.quarantine.watching

    @property
    def apart_reason(self) -> str:
        return "suspect"

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        fate = outcomes[0].fate
        crashed = fate is Fate.CRASHED or fate is Fate.CRASHED_ALONE
        if crashed:
            self.quarantine.blame(outcomes, self._screening.compare_waiting)
        super().ended(worker, batch, outcomes, seconds)
        # A job that comes back unstarted is not known to be a suspect, if its like ended another worker meanwhile.
        if self.quarantine.watching and (crashed or fate is Fate.UNSTARTED):
            for size in {job.size for job in batch.jobs}:
                self._screening.compare_waiting(size)

    def _enqueue(self, job: Job, ahead: int) -> None:
        """Put a job into the queue, or park it until it was compared with the suspects.

        Raises:
            QueueFull: a limit of the queue would be exceeded.
            Quarantined: the same request has ended workers.
        """
        if self.quarantine.watching and self.quarantine.concerns(job):
            refusal = self._screening.arrived(job, ahead)
            if refusal is not None:
                raise refusal
        else:
            super()._enqueue(job, ahead)

    def _fears(self, job: Job) -> bool:
        return job.apart is not None or (job.attempt > 0 and self.quarantine.watching)

    def _leave_running(self, job: Job) -> None:
        self.quarantine.keep(job)

    def _end(self, outcome: Outcome, now: float) -> int:
        if outcome.job.phase is JobPhase.ENDED:  # expired
            self.quarantine.release(outcome.job)
        return super()._end(outcome, now)

    def _refusal_after(self, outcome: Outcome) -> str:
        job = outcome.job
        if job.apart is None:
            return ""
        if outcome.fate is Fate.ANSWERED:
            self.quarantine.answered(job)
        refusal = self.quarantine.refusal(job)
        return "" if refusal is None else refusal.sentence

    def _reject(self, job: Job, refusal: Quarantined) -> None:
        self._take_out(job, self._clock.now())
        self._refuse(job, refusal)
