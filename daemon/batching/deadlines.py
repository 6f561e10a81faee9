"""Jobs by their deadline: the earliest first, removable at any time.

A heap with lazy deletion: removed entries are emptied (as a rule a job leaves long before its deadline), and swept when
more than half are empty. So a job costs O(log n), one without a deadline nothing, and no removed job (with its body) is
kept alive.
"""

import heapq
import itertools
import math
from typing import Any

from tsctl.daemon.core.job import Job

_FEW = 64  # empty entries that are not worth sweeping


class JobDeadlines:
    """Jobs that have a deadline; jobs without one are never added."""

    def __init__(self) -> None:
        self._heap: list[list[Any]] = []  # [deadline, a unique number, job or None]
        self._entries: dict[Job, list[Any]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<JobDeadlines of {len(self)} jobs, the next at {self.next:.3f}>"

    @property
    def next(self) -> float:
        """The earliest deadline, inf if there is none."""
        heap = self._heap
        while heap:
            deadline: float = heap[0][0]
            if heap[0][2] is not None:
                return deadline
            heapq.heappop(heap)
        return math.inf

    def add(self, job: Job) -> None:
        """Add a job, if it has a deadline."""
        if job.budget is not None:
            entry = self._entries[job] = [job.deadline, next(self._numbers), job]
            heapq.heappush(self._heap, entry)

    def discard(self, job: Job) -> None:
        """Remove a job, if present."""
        if job.budget is None or job not in self._entries:
            return
        self._entries.pop(job)[2] = None
        if len(self._heap) > 2 * len(self._entries) + _FEW:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)

    def first(self, now: float, margin: float = 0.0) -> Job | None:
        """Return the job with the earliest deadline, if that is at most `margin` seconds away."""
        first = self.next
        if first == math.inf or first - margin > now:  # written as the timer is set: to the last bit
            return None
        job: Job = self._heap[0][2]
        return job
