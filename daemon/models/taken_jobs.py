"""The jobs of one version that a watcher of requests has taken: they wait there, and were accepted."""

from typing import Protocol

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Job, JobPhase, Reply, error_reply
from tsctl.daemon.metrics.version import VersionMetrics


class TakingVersion(Protocol):
    """A version, as far as these jobs depend on it."""

    clock: Clock
    metrics: VersionMetrics

    def accept(self, job: Job, *, refused: bool = False) -> None: ...
    def changed(self) -> None: ...


class TakenJobs:
    """The jobs; as long as there are some, the version is not idle."""

    def __init__(self, model: TakingVersion) -> None:
        self._model = model
        self._jobs: dict[Job, None] = {}
        self._refusing = False

    def __repr__(self) -> str:
        return f"<TakenJobs {len(self._jobs)}>"

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job: object) -> bool:
        return job in self._jobs

    def add(self, job: Job) -> None:
        """Note that a watcher has taken a job, unless it has answered it already."""
        if job.phase is JobPhase.QUEUED:
            self._jobs[job] = None

    def abandon(self, job: Job) -> None:
        """End a job whose client has left."""
        self._model.metrics.requested(job)
        job.abandon()
        self._release(job)

    def answer(self, job: Job, reply: Reply) -> None:
        """Answer a job that a watcher has taken, or takes now: no worker has run it."""
        metrics = self._model.metrics
        metrics.requested(job)
        metrics.answered_here(job, reply.status, self._model.clock.now(), len(reply.body))
        job.answer(reply)
        self._release(job)

    def give_back(self, job: Job) -> None:
        """Run a job, as one that was accepted, though the version may be stopping; a refusal is its answer."""
        job.queued = self._model.clock.now()
        try:
            self._model.accept(job, refused=self._refusing)
        except DaemonError as error:
            job.watchers = ()  # they have seen the refusal
            job.answer(error_reply(error), job.ending)
        self._release(job)

    def refuse_all(self) -> None:
        """Refuse these jobs, and those that are given back from now on: the version is going away."""
        self._refusing = True
        for job in tuple(self._jobs):
            if job in self._jobs:  # else its client has left, as others were answered
                self.give_back(job)

    def _release(self, job: Job) -> None:
        if job in self._jobs:
            del self._jobs[job]
            if not self._jobs:
                self._model.changed()
