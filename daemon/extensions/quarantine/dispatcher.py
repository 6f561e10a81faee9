"""The dispatcher that keeps requests apart which may end their workers: the same request has done so before.

Such a job runs alone, and is refused after that has happened twice.
"""

from collections.abc import Sequence

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.core.job import Batch, Fate, Job, JobPhase, Outcome
from tsctl.daemon.extensions.quarantine.quarantine import Quarantine, Quarantined
from tsctl.daemon.extensions.quarantine.screening import Screening
from tsctl.daemon.workers.engine import Worker


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
