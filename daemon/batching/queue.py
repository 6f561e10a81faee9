"""The jobs of one model version that wait for a worker: first in, first out, bounded twice."""

from collections import OrderedDict
from collections.abc import Iterator

from daemon.errors import QueueFull
from daemon.job import Job


class Queue:
    """A bounded queue from which any job can be taken out in constant time.

    Those that travel alone stand before all others, so no batch ever has one in its middle.

    Args:
        name: the model, for messages.
        max_jobs, max_bytes: limits; a job larger than `max_bytes` is taken when the queue is empty.
    """

    def __init__(self, name: str, max_jobs: int, max_bytes: int) -> None:
        self._name = name
        self.max_jobs = max_jobs
        self.max_bytes = max_bytes
        self.bytes = 0
        self._alone: OrderedDict[Job, None] = OrderedDict()  # linked lists: both ends and the middle in O(1)
        self._jobs: OrderedDict[Job, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._jobs) + len(self._alone)

    def __repr__(self) -> str:
        return f"<Queue {len(self)}/{self.max_jobs} jobs {self.bytes}/{self.max_bytes} bytes>"

    @property
    def head(self) -> Job:
        return next(iter(self._alone or self._jobs))

    def newest_first(self) -> Iterator[Job]:
        return reversed(self._jobs)

    def put(self, job: Job) -> None:
        """Add a job: at the end, or at the head if it travels alone.

        Raises:
            QueueFull: a limit would be passed; the queue is as before.
        """
        waiting = len(self)
        if waiting >= self.max_jobs:
            raise QueueFull(
                f'The queue of model "{self._name}" is full: {self.max_jobs} requests wait. Try again later.'
            )
        if waiting and self.bytes + job.size > self.max_bytes:
            raise QueueFull(
                f'The queue of model "{self._name}" is full: {self.bytes} of {self.max_bytes} bytes wait,'
                f" and this request has {job.size}. Try again later."
            )
        self._jobs_like(job)[job] = None
        if job.solo:
            self._alone.move_to_end(job, last=False)
        self.bytes += job.size

    def put_back(self, job: Job) -> None:
        """Add a job before its like. It was accepted once, so no limit refuses it now."""
        jobs = self._jobs_like(job)
        jobs[job] = None
        jobs.move_to_end(job, last=False)
        self.bytes += job.size

    def remove(self, job: Job) -> None:
        del self._jobs_like(job)[job]
        self.bytes -= job.size

    def take(self, count: int) -> list[Job]:
        """Take up to `count` jobs from the head, oldest first."""
        alone = min(count, len(self._alone))
        taken = [self._alone.popitem(last=False)[0] for _ in range(alone)]
        taken += [self._jobs.popitem(last=False)[0] for _ in range(min(count - alone, len(self._jobs)))]
        self.bytes -= sum(job.size for job in taken)
        return taken

    def _jobs_like(self, job: Job) -> OrderedDict[Job, None]:
        return self._alone if job.alone else self._jobs
