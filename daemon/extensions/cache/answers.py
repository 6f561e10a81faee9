"""The answers of one version that are given again, and the requests that wait for the answer to an equal one.

    request ──▶ its digest ──▶ in the cache ─────────────────────────────▶ answered
                          ├──▶ an equal one is running ──▶ waits ────────▶ answered with the same, or runs itself
                          └──▶ runs ──▶ answered with 200, and whole ────▶ kept

A worker of a folder that is served in place has the files of when it was started: only answers to requests that came
since the last start are given again.

Small requests are hashed at once, larger ones in a thread of the clock's. What waits here has the same limits as the
version's queue, beside it. Answers are given, and requests given back, some at a time in each turn of the loop.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.fingerprint import AT_ONCE, PARAMS_AT_ONCE, TRAVEL, fingerprint
from tsctl.daemon.core.job import Job, JobPhase, Param, Reply
from tsctl.daemon.declarations import Samples, VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.cache import limits_of
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion

OVERHEAD = 700  # bytes that an answer takes beside its body and its headers
OF_HEADER = 160  # bytes that a header takes beside its texts
IN_A_TURN = 64  # requests that are answered or given back, and answers that make room
CONTROL = "cache-control"
COOKIE = "set-cookie"  # is meant for one client, whatever else the answer says
# Headers that name a request, or tell how it travelled: all others, such as `baggage`, are the handler's business.
_NOT_HASHED = TRAVEL | {"x-request-id", "traceparent", "tracestate", "b3", CONTROL}


class KeptAnswer(NamedTuple):
    """An answer of so many bytes; `began`, `at`, `until`: when its run began and ended, and until when it is given."""

    reply: Reply
    size: int
    began: float
    at: float
    until: float


class AnswerCache:
    """The answers of one version: a `RequestWatcher`.

    Args:
        seconds: for which an answer is kept.
        most: bytes of all answers.
        full: called when answers leave before their time, or one is not kept for want of room.

    Attributes:
        seconds, most: as given.
        bytes: of the answers that are kept.
        hits, shared, misses: requests that were answered from the cache, with the answer of an equal one that ran at
            the time, and by a worker.
    """

    def __init__(self, model: ModelVersion, seconds: float, most: int, full: Callable[[], None]) -> None:
        self._model = model
        self._clock = model.clock
        self.seconds = seconds
        self.most = most
        self._full = full
        self._kept: OrderedDict[bytes, KeptAnswer] = OrderedDict()  # the one that was asked for longest ago is first
        self._running: dict[bytes, tuple[Job, list[Job]]] = {}  # digest → the request that runs, equal ones that wait
        self._due: deque[tuple[Job, bytes, KeptAnswer | None]] = deque()  # to be answered, or given back without one
        self._waiting = self._waiting_bytes = 0
        self.bytes = 0
        self.hits = self.shared = self.misses = 0

    def __repr__(self) -> str:
        return f"<AnswerCache of {self._model.name}/{self._model.version}: {len(self)} answers, {self.bytes} bytes>"

    def __len__(self) -> int:
        return len(self._kept)

    def watch(self, job: Job, asked: RequestFacts) -> bool:  # noqa: ARG002
        """Answer a request from the cache, or let it wait for its digest or for an equal one, or let it run."""
        directives = directives_of(job.headers)
        if "no-store" in directives or self._model.stopping or not self._model.available:
            return False
        fresh = "no-cache" in directives or "max-age=0" in directives
        if job.size <= AT_ONCE and job.infer is None and len(job.params) <= PARAMS_AT_ONCE:
            return self._ask(job, digest_of(job.params, job.headers, None), fresh=fresh)
        if self._has_own_deadline(job) or not self._has_room(job):
            return False  # it could not be told in time that it is too late
        self._wait(job)
        self._clock.aside(partial(_digest_or_none, job), partial(self._hashed, job, fresh=fresh))
        return True

    def _hashed(self, job: Job, key: bytes, *, fresh: bool) -> None:
        if self._wait_no_more(job) and not (key and self._ask(job, key, fresh=fresh)):
            self._model.taken.give_back(job)

    def _ask(self, job: Job, key: bytes, *, fresh: bool) -> bool:
        """Answer a request, or let it wait, and return True; or note that it is about to run."""
        if self._model.source.unpacked is None:
            key += b"%d" % self._model.metrics.tally["starts"]
        if not fresh:
            kept = self._find(key)
            if kept is not None:
                self.hits += 1
                self._answer(job, kept)
                return True
            if self._waits(job, key):
                return True
        self._run(job, key)
        return False

    def _waits(self, job: Job, key: bytes) -> bool:
        """Let a request wait for an equal one that runs, if there is one that it need not be afraid of."""
        if key not in self._running or self._model.settings.queue_timeout or not self._has_room(job):
            return False
        running, waiting = self._running[key]
        if (running.low_priority and not job.low_priority) or self._has_own_deadline(job):
            return False
        if running.deadline > job.deadline:
            return False
        self._wait(job)
        waiting.append(job)
        return True

    def _run(self, job: Job, key: bytes) -> None:
        self.misses += 1
        first = key not in self._running
        if first:
            self._running[key] = job, []
        job.watchers += (_Running(self, key, self._clock.now(), first=first),)

    def ran(self, key: bytes, reply: Reply | None, began: float, *, first: bool, left: bool) -> None:
        """Keep the answer of a request that ran, if it may be given again; equal ones get it, or run themselves.

        Args:
            reply: None if there is none, or not a whole one.
            first: equal ones may have waited for this one.
            left: there is none because its client left: it says nothing of what equal ones would get.
        """
        kept = None if reply is None else self._keep(key, reply, began)
        if not first:
            return
        _, waiting = self._running.pop(key)
        runs = next((job for job in waiting if job.phase is JobPhase.QUEUED), None)
        if kept is None and left and runs is not None:  # one runs, the others wait for that one
            waiting.remove(runs)
            self._run(runs, key)
            self._running[key] = runs, waiting
            waiting, key = [runs], b""
        for job in waiting:
            self._due.append((job, key, kept))
        if waiting:
            self._clock.soon(self._go_on)

    def _go_on(self) -> None:
        """Answer some of the requests that have waited, or let them run."""
        for _ in range(min(IN_A_TURN, len(self._due))):
            job, key, kept = self._due.popleft()
            if not self._wait_no_more(job):
                continue
            if kept is not None:
                self.shared += 1
                self._answer(job, kept)
                continue
            if key:  # else it is known to run
                self._run(job, key)
            self._model.taken.give_back(job)
        if self._due:
            self._clock.soon(self._go_on)

    def _find(self, key: bytes) -> KeptAnswer | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._clock.now() >= kept.until:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return kept

    def _keep(self, key: bytes, reply: Reply, began: float) -> KeptAnswer | None:
        """Return an answer as it is given again, None if it may not be; it stays in the cache if there is room."""
        seconds = seconds_of(reply, self.seconds)
        if not seconds:
            return None
        headers = [header for header in reply.headers if header[0].lower() != "age"]
        size = len(reply.body) + len(reply.phrase) + OVERHEAD
        size += sum(len(name) + len(value) + OF_HEADER for name, value in headers)
        now = self._clock.now()
        kept = KeptAnswer(Reply(200, bytes(reply.body), reply.phrase, headers), size, began, now, now + seconds)
        older = self._kept.get(key)
        if older is not None and older.began > began and now < older.until:
            return kept  # an equal request that began later has been answered already
        if older is not None:
            self._drop(key)
        if self._make_room(size):
            self._kept[key] = kept
            self.bytes += size
        return kept

    def _make_room(self, size: int) -> bool:
        """Let answers leave until so many bytes fit; return whether they do: at most some leave at once."""
        if size > self.most:
            return False
        now, early = self._clock.now(), False
        for _ in range(IN_A_TURN):
            if self.bytes + size <= self.most:
                break
            oldest, leaving = next(iter(self._kept.items()))
            early = early or now < leaving.until
            self._drop(oldest)
        fits = self.bytes + size <= self.most
        if early or not fits:
            self._full()
        return fits

    def _drop(self, key: bytes) -> None:
        self.bytes -= self._kept.pop(key).size

    def _answer(self, job: Job, kept: KeptAnswer) -> None:
        """Answer a request with an answer that was kept; the header `Age` (RFC 9111) says for how many seconds."""
        age = str(int(self._clock.now() - kept.at))
        self._model.taken.answer(job, kept.reply.with_headers((*kept.reply.headers, ("Age", age))))

    def _has_own_deadline(self, job: Job) -> bool:
        return job.budget is not None and job.budget.by_client

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
    """A request that runs, whose answer is kept, and for which equal ones may wait: a `JobWatcher`."""

    def __init__(self, cache: AnswerCache, key: bytes, began: float, *, first: bool) -> None:
        self._cache = cache
        self._key = key
        self._began = began
        self._first = first
        self._told = False

    def piece(self, piece: Reply) -> None:  # noqa: ARG002 - a streamed answer is not kept
        """Let equal requests run themselves."""
        self._tell(None)

    def ended(self, job: Job, reply: Reply | None) -> None:  # noqa: ARG002
        self._tell(reply, left=reply is None)

    def refused(self, job: Job, error: DaemonError) -> None:  # noqa: ARG002
        self._tell(None)

    def _tell(self, reply: Reply | None, *, left: bool = False) -> None:
        if not self._told:
            self._told = True
            self._cache.ran(self._key, reply, self._began, first=self._first, left=left)


def digest_of(params: Sequence[Param], headers: Sequence[tuple[str, str]], infer: object) -> bytes:
    """Return the digest by which a request equals others; thread-safe."""
    made = blake2b(fingerprint(params, headers, _NOT_HASHED, ("x-b3-",)), digest_size=32)
    if infer is not None:
        made.update(msgspec.msgpack.encode(infer))  # with the request's id, which is a member of the answer
    return made.digest()


def _digest_or_none(job: Job) -> bytes:
    """Return the digest; empty if there is none, since nothing may be raised in the thread."""
    try:
        return digest_of(job.params, job.headers, job.infer)
    except Exception:  # noqa: BLE001 - then the request runs, as without a cache
        return b""


def directives_of(headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return the directives of `Cache-Control`, in lower case."""
    found = [value for name, value in headers if len(name) == len(CONTROL) and name.lower() == CONTROL]
    return [each.strip().lower() for value in found for each in value.split(",")]


def seconds_of(reply: Reply, most: float) -> float:
    """Return for how many seconds an answer may be given again: at most so many, 0.0 for not at all."""
    if reply.status != 200 or reply.error or any(name.lower() == COOKIE for name, _ in reply.headers):
        return 0.0
    directives = directives_of(reply.headers)
    if {"no-store", "no-cache", "private"} & {each.partition("=")[0] for each in directives}:
        return 0.0
    for each in directives:
        name, _, value = each.partition("=")
        if name in ("max-age", "s-maxage") and value.isdecimal():
            most = min(most, float(value))
    return most


class CacheService(Service):
    def __init__(self, kernel: Kernel) -> None:
        self._registry = kernel.registry
        self._recurring = kernel.observation.recurring

    def follow(self, model: ModelVersion) -> None:
        # The answer to a piece of a sequence depends on what came before: a cache would give a wrong one.
        if model.settings.cache is None or not model.dispatcher.sends_batches or cache_of(model) is not None:
            return
        seconds, most = limits_of(model.settings.cache)
        model.watchers += (AnswerCache(model, seconds, most, partial(self._note_full, model)),)

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view is not VersionView.DESCRIPTION or (cache := cache_of(model)) is None:
            return {}
        return {
            "cache": {
                "seconds": cache.seconds, "bytes": cache.most, "answers": len(cache), "bytesKept": cache.bytes,
                "hits": cache.hits, "shared": cache.shared, "misses": cache.misses,
            }
        }  # fmt: skip

    def samples(self) -> Samples:
        caches = [
            ((each.name, each.version), cache) for each in self._registry if (cache := cache_of(each)) is not None
        ]
        for name in ("hits", "shared", "misses", "bytes"):
            yield [(labels, getattr(cache, name)) for labels, cache in caches]

    def _note_full(self, model: ModelVersion) -> None:
        text = "answers leave the cache before their time: `cache` in model-config.yaml may have more `bytes`"
        self._recurring.note("cache-full", text, model=model.name, version=model.version)


def cache_of(model: ModelVersion) -> AnswerCache | None:
    return next((each for each in model.watchers if isinstance(each, AnswerCache)), None)
