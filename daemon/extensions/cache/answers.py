"""The answers of one version that are given again, and the requests that wait for the answer to an equal one.

    request ──▶ its digest ──▶ in the cache ─────────────────────────────▶ answered
                          ├──▶ an equal one is running ──▶ waits ────────▶ answered with the same, or runs itself
                          └──▶ runs ──▶ answered with 200, and whole ────▶ kept

Two requests are equal if their handler cannot tell them apart: parameters with names, types and values, the route, and
all headers but ids, tracing and how the request travelled (core/fingerprint.py). Small requests are hashed at once,
larger ones in a thread of the clock's. What waits here has the same limits as the version's queue, beside it; a request
with a deadline of its own waits for no other.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.fingerprint import fingerprint
from tsctl.daemon.core.job import Job, JobPhase, Param, Reply
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion

AT_ONCE = 16 * 1024  # bytes of a request that is hashed on the loop: 20 µs
OVERHEAD = 512  # bytes that an answer takes beside its body and its headers
CONTROL, NO_STORE, NO_CACHE = "cache-control", "no-store", "no-cache"


class KeptAnswer(NamedTuple):
    """An answer; `size` in bytes, `at` on the daemon's clock."""

    reply: Reply
    size: int
    at: float


class AnswerCache:
    """The answers of one version: a `RequestWatcher`.

    Args:
        seconds: for which an answer is kept.
        most: bytes of all answers.
        full: called when an answer leaves before its time.

    Attributes:
        bytes: of the answers that are kept.
        hits, shared, misses: requests that were answered from the cache, with the answer of an equal one that ran at
            the time, and by a worker.
    """

    def __init__(self, model: ModelVersion, seconds: float, most: int, full: Callable[[], None]) -> None:
        self._model = model
        self._seconds = seconds
        self._most = most
        self._full = full
        self._kept: OrderedDict[bytes, KeptAnswer] = OrderedDict()  # the one that was asked for longest ago is first
        self._running: dict[bytes, list[Job]] = {}  # the digest of a request that runs → equal ones that wait for it
        self._waiting = self._waiting_bytes = 0
        self.bytes = 0
        self.hits = self.shared = self.misses = 0

    def __repr__(self) -> str:
        return f"<AnswerCache of {self._model.name}/{self._model.version}: {len(self)} answers, {self.bytes} bytes>"

    def __len__(self) -> int:
        return len(self._kept)

    def watch(self, job: Job, asked: RequestFacts) -> bool:  # noqa: ARG002
        """Answer a request from the cache, or let it wait for its digest or for an equal one, or let it run."""
        control = _control_of(job.headers)
        if NO_STORE in control or self._model.stopping:
            return False
        if job.size > AT_ONCE:
            if not self._has_room(job):
                return False
            self._wait(job)
            digest = partial(_digest_of, job.params, job.headers, job.infer)
            self._model.clock.aside(digest, partial(self._hashed, job, fresh=NO_CACHE in control))
            return True
        return self._ask(job, _digest_of(job.params, job.headers, job.infer), fresh=NO_CACHE in control)

    def _hashed(self, job: Job, key: bytes, *, fresh: bool) -> None:
        self._wait_no_more(job)
        if job.phase is JobPhase.QUEUED and not self._ask(job, key, fresh=fresh):  # else its client has left
            self._model.give_back(job)

    def _ask(self, job: Job, key: bytes, *, fresh: bool) -> bool:
        """Answer a request, or let it wait, and return True; or note that it is about to run."""
        if not fresh:
            kept = self._find(key)
            if kept is not None:
                self.hits += 1
                self._answer(job, kept)
                return True
            equal = self._running.get(key)
            if equal is not None and job.budget is None and self._has_room(job):
                self._wait(job)
                equal.append(job)
                return True
        self.misses += 1
        if key not in self._running:
            self._running[key] = []
            job.watchers += (_Running(self, key),)
        return False

    def ran(self, key: bytes, reply: Reply | None) -> None:
        """Keep the answer of a request that ran, if it may be given again; equal ones get it, or run themselves.

        Args:
            reply: None if there is none, or not a whole one.
        """
        waiting = [job for job in self._running.pop(key, ()) if self._wait_no_more(job)]
        kept = None if reply is None or not _may_be_kept(reply) else self._keep(key, reply)
        for job in waiting:
            if kept is not None:
                self.shared += 1
                self._answer(job, kept)
            elif not self._ask(job, key, fresh=False):
                self._model.give_back(job)

    def _find(self, key: bytes) -> KeptAnswer | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._model.clock.now() - kept.at >= self._seconds:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept

    def _keep(self, key: bytes, reply: Reply) -> KeptAnswer:
        """Return an answer as it is given again; it stays in the cache if that is large enough."""
        body, now = bytes(reply.body), self._model.clock.now()
        size = len(body) + OVERHEAD + sum(len(name) + len(value) for name, value in reply.headers)
        kept = KeptAnswer(Reply(reply.status, body, reply.phrase, reply.headers), size, now)
        if size > self._most:
            return kept
        if key in self._kept:
            self._drop(key)
        while self.bytes + size > self._most:
            oldest, leaving = next(iter(self._kept.items()))
            if now - leaving.at < self._seconds:
                self._full()
            self._drop(oldest)
        self._kept[key] = kept
        self.bytes += size
        return kept

    def _drop(self, key: bytes) -> None:
        self.bytes -= self._kept.pop(key).size

    def _answer(self, job: Job, kept: KeptAnswer) -> None:
        """Answer a request with an answer that was kept; the header `Age` (RFC 9111) says for how many seconds."""
        now, metrics = self._model.clock.now(), self._model.metrics
        metrics.requested(job)
        metrics.answered(job, kept.reply.status, now, len(kept.reply.body))
        job.answer(kept.reply.with_headers((*kept.reply.headers, ("Age", str(int(now - kept.at))))))

    def _has_room(self, job: Job) -> bool:
        queue = self._model.queue
        return self._waiting < queue.max_jobs and self._waiting_bytes + job.size <= queue.max_bytes

    def _wait(self, job: Job) -> None:
        self._waiting += 1
        self._waiting_bytes += job.size

    def _wait_no_more(self, job: Job) -> bool:
        """Count a job that has waited; return whether its client still does."""
        self._waiting -= 1
        self._waiting_bytes -= job.size
        return job.phase is JobPhase.QUEUED


class _Running:
    """A request that runs, for which equal ones may wait: a `JobWatcher`."""

    def __init__(self, cache: AnswerCache, key: bytes) -> None:
        self._cache = cache
        self._key = key
        self._told = False

    def piece(self, piece: Reply) -> None:  # noqa: ARG002 - a streamed answer is not kept
        """Let equal requests run themselves."""
        self._tell(None)

    def ended(self, job: Job, reply: Reply | None) -> None:  # noqa: ARG002
        self._tell(reply)

    def refused(self, job: Job, error: DaemonError) -> None:  # noqa: ARG002
        self._tell(None)

    def _tell(self, reply: Reply | None) -> None:
        if not self._told:
            self._told = True
            self._cache.ran(self._key, reply)


def _digest_of(params: Sequence[Param], headers: Sequence[tuple[str, str]], infer: object) -> bytes:
    """Return the digest by which a request equals others; thread-safe."""
    told = [header for header in headers if header[0].lower() != CONTROL]
    made = blake2b(fingerprint(params, told), digest_size=32)
    if infer is not None:
        made.update(msgspec.msgpack.encode(infer))
    return made.digest()


def _control_of(headers: Sequence[tuple[str, str]]) -> str:
    """Return the directives of `Cache-Control`, in lower case; empty without."""
    return ",".join([value.lower() for name, value in headers if len(name) == len(CONTROL) and name.lower() == CONTROL])


def _may_be_kept(reply: Reply) -> bool:
    return reply.status == 200 and not reply.error and NO_STORE not in _control_of(reply.headers)
