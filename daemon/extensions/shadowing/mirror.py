"""The mirror of one model: copies of requests for a shadow, which runs them in idle time.

    request ──drawn, and there is room──▶ watched ──answered──▶ waits ──quiet──▶ runs at the shadow ──▶ compared
                                             └─its client leaves──▶ forgotten   └─the shadow refuses──▶ dropped

A client waits for nothing of this: its answer goes out first, and a copy begins only while no request of the whole
daemon waits, no version of the model runs one, and a worker of the shadow is idle (idle_time.py). A request that comes
while a copy runs suspends that, until the daemon is idle again. Copies have bounds of their own, beyond which requests
are not copied; a copy whose answers grow beyond them, piece by piece, is dropped at that piece, on either side.
"""

import json
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any
from weakref import WeakSet

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Ending, Job, Param, Piece, Reply, ending_of_status
from tsctl.daemon.declarations import Samples, VersionView
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.shadowing.idle_time import QUIET, IdleTime, Others
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.routing.route import Route
from tsctl.daemon.models.routing.routes import DROPPED, RESULTS, Agreement
from tsctl.daemon.models.routing.steering import answering_of
from tsctl.daemon.models.version import ModelVersion

RELATIVE, ABSOLUTE = 1e-3, 1e-6
MOST_JSON = 256 * 1024  # bytes of an answer that is read as JSON; reading takes at most some milliseconds


def compare(answered: Reply, shadow: Reply) -> Agreement:
    """Compare an answer that a client got, which is no error, and its shadow's; headers do not count."""
    if ending_of_status(shadow.status) is Ending.FAILED:
        return Agreement.FAILED
    if answered.status != shadow.status or shadow.error:
        return Agreement.DIFFERENT
    if answered.body == shadow.body:
        return Agreement.SAME
    if max(len(answered.body), len(shadow.body)) > MOST_JSON:
        return Agreement.DIFFERENT
    try:
        documents = json.loads(answered.body), json.loads(shadow.body)
        return Agreement.CLOSE if are_close(*documents) else Agreement.DIFFERENT
    except (ValueError, RecursionError, OverflowError):  # the last of whole numbers beyond any float
        return Agreement.DIFFERENT


def are_close(one: Any, other: Any) -> bool:
    """Return whether two JSON documents differ in nothing but the last digits of their numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_close(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_close, one, other))
    if isinstance(one, float | int) and isinstance(other, float | int) and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (one != one and other != other)
    return bool(one == other)


MOST_COPIES = 64  # of one model, from their request's arrival until the shadow has them
MOST_BYTES = 16 * 1024 * 1024  # of these copies, with both answers to each
MOST_OF_ONE = 4 * 1024 * 1024  # of one request
PIECE = 64  # bytes that a piece of an answer costs beside its own


class Copy:
    """A copied request, and the answer that its client got."""

    __slots__ = ("__weakref__", "headers", "id", "infer", "params", "parts", "reply", "size")

    def __init__(self, job: Job) -> None:
        self.id, self.infer = job.id, job.infer
        self.params = [Param(param.name, param.content_type, bytes(param.value)) for param in job.params]
        self.headers = list(job.headers)
        self.size = job.size
        self.parts: list[bytes] = []
        self.reply: Reply | None = None

    def whole(self, reply: Reply) -> Reply:
        """Return the last reply of an answer with the pieces before it."""
        if not self.parts:
            return reply
        return Reply(reply.status, b"".join((*self.parts, reply.body)), error=reply.error)

    def release(self) -> None:
        """Release the request and its answer: the copy was dropped, and its client may still be reading."""
        self.params = []
        self.parts.clear()
        self.reply = None


class _Watched:
    """A client's request that is copied."""

    def __init__(self, mirror: "Mirror", copy: Copy) -> None:
        self._mirror = mirror
        self._copy = copy

    def piece(self, piece: Reply) -> None:
        self._mirror.keep_piece(self._copy, piece)

    def ended(self, job: Job, reply: Reply | None) -> None:  # noqa: ARG002
        if reply is None:
            self._mirror.forget(self._copy)
        else:
            self._mirror.keep_answer(self._copy, reply)

    def refused(self, job: Job, error: DaemonError) -> None:  # noqa: ARG002
        self._mirror.forget(self._copy)


class Mirror:
    """Copies the requests of one model for its shadow.

    Args:
        others: returns all versions of the daemon, and those of the model that answer clients.
        shadow: returns the shadow; None while it is not registered.
        counts: receives how many copies ended how: `Agreement`, and `dropped`.
        differs: called with the request's id and a sentence if an answer is `different` or `failed`.
    """

    def __init__(
        self,
        route: Route,
        clock: Clock,
        random: Random,
        others: Others,
        shadow: Callable[[], ModelVersion | None],
        counts: "Counter[str]",
        differs: Callable[[str, str], None],
    ) -> None:
        self.route = route
        self._clock = clock
        self._random = random
        self._shadow = shadow
        self._idle_time = IdleTime(clock, others)
        self._counts = counts
        self._differs = differs
        # Weak, because nobody tells of a request that is never submitted: its copy goes with its job.
        self._copies: WeakSet[Copy] = WeakSet()
        self._waiting: deque[Copy] = deque()
        self._timer: Timer | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Mirror to {self.route.shadow} {len(self._copies)} copies, {len(self._waiting)} waiting>"

    def close(self) -> None:
        """Drop the copies that wait, and copy nothing more."""
        self._closed = True
        self._idle_time.release()
        while self._waiting:
            self._drop(self._waiting.popleft())
        if self._timer is not None:
            self._timer.cancel()

    def watch(self, job: Job, asked: RequestFacts) -> bool:  # noqa: ARG002
        """Copy a request that names no version, if it is drawn, and there is room."""
        if self._closed or not job.unnamed or self._random.random() >= self.route.sample:
            return False
        if job.size > MOST_OF_ONE or len(self._copies) >= MOST_COPIES or self._size + job.size > MOST_BYTES:
            self._counts[DROPPED] += 1
            return False
        copy = Copy(job)
        self._copies.add(copy)
        job.watchers += (_Watched(self, copy),)
        return False

    @property
    def _size(self) -> int:
        return sum(copy.size for copy in self._copies)

    def forget(self, copy: Copy) -> None:
        """Drop the copy of a request that was not answered."""
        self._copies.discard(copy)

    def keep_piece(self, copy: Copy, piece: Reply) -> None:
        """Keep a piece of the answer that the client of a copied request gets."""
        if self._grow(copy, len(piece.body)):
            copy.parts.append(piece.body)

    def keep_answer(self, copy: Copy, reply: Reply) -> None:
        """Keep the answer that the client of a copied request has got, and let the shadow run the copy."""
        if ending_of_status(reply.status) is not Ending.ANSWERED:  # an error, whosever it is
            self._drop(copy)
        elif self._grow(copy, len(reply.body)):
            copy.reply = copy.whole(reply)
            copy.parts.clear()
            self._waiting.append(copy)
            # Not now: the answer is on its way, and the worker's next batch is about to begin.
            self._clock.soon(self._go_on)

    def _grow(self, copy: Copy, count: int) -> bool:
        """Count bytes of an answer before they are kept; drop the copy, and return False, if there is no room."""
        if copy not in self._copies:
            return False
        if self._closed or self._size + count + PIECE > MOST_BYTES:
            self._drop(copy)
            return False
        copy.size += count + PIECE
        return True

    def _go_on(self) -> None:
        """Run copies while there is idle time, and look again soon if some are left."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and not self._closed:
            shadow = self._shadow()
            if shadow is None or shadow.stopping or not shadow.pool.serving:
                self._drop(self._waiting.popleft())
            elif not shadow.pool.idle or shadow.queue.waiting:
                self._timer = self._clock.later(QUIET, self._go_on)
                return
            elif left := self._idle_time.wait(shadow):
                self._timer = self._clock.later(left, self._go_on)
                return
            else:
                self._run(shadow, self._waiting.popleft())

    def _run(self, shadow: ModelVersion, copy: Copy) -> None:
        answered: list[bytes] = []
        job = Job(
            copy.id, copy.params, copy.headers, self._clock.now(),
            partial(self._compare, copy, answered), partial(self._take, copy, answered), low_priority=True,
        )  # fmt: skip
        job.infer = copy.infer
        try:
            self._idle_time.run_copy(shadow, job)
        except DaemonError:
            self._drop(copy)

    def _take(self, copy: Copy, answered: list[bytes], piece: Reply) -> None:
        """Take a piece of the shadow's answer, which no client slows down; refuse further ones of a dropped copy."""
        flow = piece.flow if isinstance(piece, Piece) else None
        if self._grow(copy, len(piece.body)):
            answered.append(piece.body)
            if flow is not None:
                flow.wanted = True
                self._clock.soon(flow.drained)
        else:
            answered.clear()
            if flow is not None:
                flow.refuse()

    def _compare(self, copy: Copy, answered: list[bytes], reply: Reply) -> None:
        self._idle_time.end_copy()
        if copy in self._copies and copy.reply is not None:
            if answered:
                reply = Reply(reply.status, b"".join((*answered, reply.body)), error=reply.error)
            agreement = compare(copy.reply, reply)
            self._copies.discard(copy)
            self._counts[agreement.value] += 1
            if agreement in (Agreement.DIFFERENT, Agreement.FAILED):
                self._differs(copy.id, _sentence(agreement, copy.reply, reply))
        self._clock.soon(self._go_on)

    def _drop(self, copy: Copy) -> None:
        if copy in self._copies:
            self._copies.discard(copy)
            self._counts[DROPPED] += 1
            copy.release()


def _sentence(agreement: Agreement, answered: Reply, shadow: Reply) -> str:
    if agreement is Agreement.FAILED:
        said = shadow.body.decode("utf-8", "replace").partition("\n")[0][:200]
        return f"the shadow failed with {shadow.status}: {said}"
    if answered.status != shadow.status:
        return f"the shadow answered {shadow.status}, not {answered.status}"
    return f"the shadow's answer differs: {len(shadow.body)} bytes, not {len(answered.body)}, or other values"


class ShadowingService(Service):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        self._registry, self._live = kernel.registry, kernel.registrar.live
        self._clock, self._recurring = kernel.clock, kernel.observation.recurring
        self._mirrors: dict[str, Mirror] = {}
        kernel.registry.routes.copier = self._follow

    def follow(self, model: ModelVersion) -> None:
        mirror = self._mirrors.get(model.name)
        if mirror is not None and mirror not in model.watchers:
            model.watchers = (mirror, *model.watchers)

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        if view is not VersionView.DESCRIPTION:
            return {}
        route = self._registry.routes.of(model.name)
        if route is None or not route.shadow:
            return {}
        counts = self._registry.routes.copies.get((model.name, route.shadow), Counter())
        return {"copies": {result: counts[result] for result in RESULTS}}

    def samples(self) -> Samples:
        copies = self._registry.routes.copies
        return ([((*names, result), counts[result]) for names, counts in copies.items() for result in RESULTS],)

    def _follow(self, name: str, route: Route | None) -> None:
        """Copy the requests of a model as its route says from now on."""
        before = self._mirrors.pop(name, None)
        versions = [model for model in self._live if model.name == name]
        if before is not None:
            before.close()
            for model in versions:
                model.watchers = tuple(each for each in model.watchers if each is not before)
        if route is None or not route.shadow:
            return
        version = route.shadow
        counts = self._registry.routes.copies.setdefault((name, version), Counter())
        self._mirrors[name] = Mirror(
            route, self._clock, self._registry.routes.random, partial(self._others, name),
            partial(self._find, name, version), counts, partial(self._note, name, version),
        )  # fmt: skip
        for model in versions:
            self.follow(model)

    def _others(self, name: str) -> tuple[Iterable[ModelVersion], Iterable[ModelVersion]]:
        return self._registry, answering_of(self._registry, name)

    def _find(self, name: str, version: str) -> ModelVersion | None:
        return self._registry.find(name, version) if self._registry.holds(name, version) else None

    def _note(self, name: str, version: str, request: str, text: str) -> None:
        self._recurring.note("shadow-differed", text, model=name, version=version, request=request)
