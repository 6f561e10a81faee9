"""Keep requests that end workers apart from others: identify them, and decide which are rejected.

Small requests are hashed at once, in microseconds; larger ones one after the other in a thread of the clock's.
So a request that arrives after a worker's end is compared only when all requests that ended with it are known.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.fingerprint import AT_ONCE, PARAMS_AT_ONCE, fingerprint
from tsctl.daemon.core.job import Fate, Job, Outcome, Param
from tsctl.daemon.core.timing import duration

DEATHS = 2  # workers that ended with it alone
REFUSED = 60.0  # seconds
KEPT = 600.0  # seconds after the last end
MOST = 256  # suspects; beyond, the one whose last worker ended first is forgotten


@dataclass(slots=True)
class Suspect:
    """The record of one request.

    Attributes:
        size: bytes of its parameters.
        deaths: workers that ended of themselves while they ran this request alone.
        died: when the last worker ended with it, alone or not.
        reason: how that worker ended, in words.
    """

    size: int
    deaths: int
    died: float
    reason: str

    def refused_for(self, now: float) -> float:
        """Return the seconds for which an equal request is rejected; 0.0 for none."""
        return max(0.0, self.died + REFUSED - now) if self.deaths >= DEATHS else 0.0


class Suspects:
    """Requests that may end their worker, and for how long equal requests are rejected.

        unknown ──its worker ended of itself──▶ SUSPECT: travels alone ──the second time alone──▶ REFUSED for a minute
           ▲                                       │      ▲                                          │
           └──answered; forgotten; cleared─────────┘      └─────────────the minute is over───────────┘

    A worker that ended while it ran several requests does not incriminate one of them, so only ends alone count towards
    REFUSED. After the minute one more end alone is enough for another minute. Any answer clears a request.

    A request is identified by a digest of its handler's whole input (fingerprint.py). Digests are compared only with
    those of requests of the same size, so a service without suspects computes none, and one with suspects only a few.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Suspect] = OrderedDict()  # in the order of their last deaths
        self._sizes: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<Suspects {len(self)} of {len(self._sizes)} sizes>"

    def has_size(self, size: int) -> bool:
        """Return whether a suspect has so many bytes."""
        return size in self._sizes

    def refused(self, now: float) -> int:
        """Return how many suspects are rejected now."""
        return sum(suspect.refused_for(now) > 0.0 for suspect in self._known.values())

    def died(self, digest: bytes, size: int, alone: bool, reason: str, now: float) -> Suspect:
        """Note that a worker ended of itself while it ran this request.

        Args:
            alone: the worker ran nothing else.
        """
        self.forget(now)
        suspect = self._known.get(digest)
        if suspect is None:
            suspect = self._known[digest] = Suspect(size, 0, now, reason)
            self._sizes[size] += 1
        suspect.deaths += alone
        suspect.died, suspect.reason = now, reason
        self._known.move_to_end(digest)
        if len(self._known) > MOST:
            self._remove(next(iter(self._known)))
        return suspect

    def find(self, digest: bytes, now: float) -> Suspect | None:
        self.forget(now)
        return self._known.get(digest)

    def answered(self, digest: bytes) -> None:
        """Clear a request that a worker has answered and survived."""
        if digest in self._known:
            self._remove(digest)

    def forget(self, now: float) -> None:
        """Drop the suspects that have ended no worker for `KEPT` seconds."""
        while self._known:
            oldest = next(iter(self._known))
            if now - self._known[oldest].died < KEPT:
                return
            self._remove(oldest)

    def clear(self) -> None:
        self._known.clear()
        self._sizes.clear()

    def _remove(self, digest: bytes) -> None:
        size = self._known.pop(digest).size
        self._sizes[size] -= 1
        if not self._sizes[size]:
            del self._sizes[size]


MOST_AT_ONCE = 1024 * 1024  # bytes in one turn of the loop: 1 ms
LABEL = "quarantined"


class Quarantined(DaemonError):
    """The same request has ended several workers, and is rejected for a while.

    The status is that of a worker's end (500), not 503: a proxy must not carry the request to the next daemon at once.

    Args:
        model: MODEL/VERSION.
        deaths: workers that ended while they ran this request alone; the last one `ago` seconds ago, for `reason`.
        left: seconds for which the request is still rejected.
        request: its id.

    Attributes:
        sentence: the same for the answer to the request with which the last worker ended.
    """

    refusal_label = LABEL

    def __init__(self, model: str, deaths: int, ago: float, reason: str, left: float, request: str) -> None:
        until = f"refused for {math.ceil(left)} s"
        remedy = f"`tsctl retry {model}` ends that now, `tsctl set {model} --no-quarantine` for good."
        self.sentence = f"It has ended {deaths} workers that ran it alone, so the same request is {until}; {remedy}"
        super().__init__(
            f"This request was not run: the same request has ended {deaths} workers that ran it alone, the last one"
            f" {duration(ago)} ago: {reason}. It is {until}; {remedy} (Request {request})"
        )


class Quarantine:
    """The suspects of one version, and the jobs to be compared with them.

    Args:
        model: the version's name, for messages: `MODEL/VERSION`.
        refusing: called when requests begin to be rejected, with the job that was one of them, and why.

    Attributes:
        watching: there are suspects, or may be soon; read for each request.
        at_once: bytes of one request that is hashed on the loop.
    """

    def __init__(
        self, clock: Clock, model: str, refusing: Callable[[Job, str], None] = lambda job, sentence: None
    ) -> None:
        self.watching = False
        self.at_once = AT_ONCE
        self.suspects = Suspects()
        self._clock = clock
        self._model = model
        self._refusing = refusing
        self._enabled = True
        self._pending: Counter[int] = Counter()  # size → requests that ended with a worker, and are being hashed
        self._era = 0  # work begun before the last `set` is ignored
        self._kept: dict[Job, Sequence[Param]] = {}  # of jobs that have expired while a worker runs them
        self._spent = 0  # bytes that were hashed in this turn of the loop

    def __repr__(self) -> str:
        return f"<Quarantine of {self._model}: {self.suspects!r}, {self._pending.total()} to come>"

    def set(self, enabled: bool) -> None:
        """Forget all suspects; find new ones if `enabled`."""
        self._enabled = enabled
        self._era += 1
        self.suspects.clear()
        self._pending.clear()
        self.watching = False

    def keep(self, job: Job) -> None:
        """Keep the values of a job that expires while a worker runs it: the worker may still end with it."""
        if self._enabled:
            self._kept[job] = job.params

    def release(self, job: Job) -> None:
        """Release the values of an expired job that its worker has finished."""
        self._kept.pop(job, None)

    def concerns(self, job: Job) -> bool:
        """Return whether the job has to be compared: a suspect has the same size."""
        return (self.suspects.has_size(job.size) or job.size in self._pending) and not job.exclusive

    def compare_at_once(self, job: Job) -> bool:
        """Mark the job if it is a suspect. Return False, with nothing done, if hashing needs a thread."""
        if not self._fits(job, job.params):
            return False
        self._mark(job, fingerprint(job.params, job.headers))
        return True

    def compare_aside(self, job: Job, then: Callable[[Job], None]) -> None:
        """As `compare_at_once`, in a thread, then call `then`. The values must not be released before."""
        self._clock.aside(partial(fingerprint, job.params, job.headers), partial(self._compared, job, then))

    def refusal(self, job: Job) -> Quarantined | None:
        """Return why a compared job is rejected; None if not."""
        if job.apart is None:
            return None
        now = self._clock.now()
        suspect = self.suspects.find(job.apart, now)
        if suspect is None or not (left := suspect.refused_for(now)):
            return None
        return Quarantined(self._model, suspect.deaths, now - suspect.died, suspect.reason, left, job.id)

    def blame(self, outcomes: Sequence[Outcome], then: Callable[[int], None]) -> None:
        """Note that a worker ended of itself with these jobs. To be called before their answers, which release the
        values.

        Args:
            then: called with the size of each job that had to be hashed in a thread, when that is done.
        """
        if not self._enabled:
            return
        for outcome in outcomes:
            job = outcome.job
            params = self._kept.get(job, job.params)
            if job.exclusive or (job.size and not params):
                continue  # a question to the handler; or the values are gone
            if job.apart is not None:
                self._died(job.apart, outcome)
            elif self._fits(job, params):
                self._died(fingerprint(params, job.headers), outcome)
            else:
                self._pending[job.size] += 1
                self._clock.aside(
                    partial(fingerprint, params, job.headers), partial(self._found, outcome, then, self._era)
                )
            self.watching = True

    def answered(self, job: Job) -> None:
        """Clear a request: a worker has answered the job, and lives."""
        if job.apart is not None:
            self.suspects.answered(job.apart)
            self._look()

    def _fits(self, job: Job, params: Sequence[Param]) -> bool:
        """Return whether the job can be hashed now, without holding up the loop."""
        if job.size > self.at_once or len(params) > PARAMS_AT_ONCE or self._spent + job.size > MOST_AT_ONCE:
            return False
        if not self._spent:
            self._clock.soon(self._new_turn)
        self._spent += job.size + 1
        return True

    def _new_turn(self) -> None:
        self._spent = 0

    def _mark(self, job: Job, digest: bytes) -> None:
        job.apart = digest if self.suspects.find(digest, self._clock.now()) is not None else None
        self._look()

    def _compared(self, job: Job, then: Callable[[Job], None], digest: bytes) -> None:
        self._mark(job, digest)
        then(job)

    def _found(self, outcome: Outcome, then: Callable[[int], None], era: int, digest: bytes) -> None:
        if era == self._era:
            size = outcome.job.size
            self._pending[size] -= 1
            if not self._pending[size]:
                del self._pending[size]
            self._died(digest, outcome)
            then(size)

    def _died(self, digest: bytes, outcome: Outcome) -> None:
        job, now, alone = outcome.job, self._clock.now(), outcome.fate is Fate.CRASHED_ALONE
        suspect = self.suspects.died(digest, job.size, alone, outcome.reason, now)
        job.apart = digest
        if alone and suspect.deaths >= DEATHS:
            self._refusing(
                job,
                f"refusing a request of {job.size} bytes for {suspect.refused_for(now):.0f} s:"
                f" it ended {suspect.deaths} workers that ran it alone, the last: {outcome.reason}",
            )

    def _look(self) -> None:
        self.watching = bool(self.suspects) or bool(self._pending)
