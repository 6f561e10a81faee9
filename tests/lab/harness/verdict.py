"""The permitted outcomes of a request, and whether its outcome is one of them: pure functions.

    retry       everything is answered 200; if two workers were killed with it, 507 may say so
    no retry    … or 507 if the worker that ran it was killed
    pieces      retried before the first piece; afterwards the answer is cut off if its worker was killed
    narrow      retried; 503 with Retry-After while the queue is full
    crashing    no retry; 500 for a request that ends its worker, and no other notices
    timed       504 where the request, or its model, has a time that may be over
    routed      answered by the version that it names, or by one that a route had while it was under way

Whoever has run a request has written so into the journal; that is held against the answer when all is over.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """How a request ended, as far as its client knows."""

    RIGHT = "200, and right"
    DIED = "507, its worker was killed, and it is not to be run again"
    DIED_AGAIN = "507, two workers were killed with it"
    CUT_OFF = "cut off after its first piece, its worker was killed"
    CRASHED = "500, it has ended its worker"
    EXPIRED = "504, its time was over"
    QUEUE_FULL = "503 with Retry-After, the queue was full"
    AGAIN = "over gRPC, cut off as its server was replaced: the client asks again"
    HALF_SENT = "the client left after half of the body"
    LEFT = "the client left after the request"
    HALF_READ = "the client left while it was reading"


@dataclass(frozen=True, slots=True)
class Rules:
    """A model's promises.

    Attributes:
        retry: what a worker died with is run once more.
        narrow: its queue is so short that it may be full.
        pieces: it answers in pieces.
        timeout: milliseconds that it allows a request; 0 for any.
    """

    retry: bool = True
    narrow: bool = False
    pieces: bool = False
    timeout: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request.

    Attributes:
        generation: of the archive that was acknowledged last when it was sent.
        deadline: milliseconds that it may take, as its client says; 0 for any.
        slow: its handler is to take longer than usual.
        crash: its handler is to end the process.
        version: which generation it names; 0 for none.
        routes, since: of a model with routes, the generations that have a weight, route after route while they change,
            and where in that list the route of the moment is at which it was sent.
    """

    number: int
    rules: Rules
    words: bytes
    generation: int
    deadline: int = 0
    slow: bool = False
    crash: bool = False
    version: int = 0
    routes: Sequence[frozenset[int]] = ()
    since: int = 0

    @property
    def body(self) -> bytes:
        verb = b"pieces" if self.rules.pieces else b"slow" if self.slow else b"crash" if self.crash else b"whole"
        return b"%d %s %08x %s" % (self.number, verb, zlib.crc32(self.words, self.number), self.words)

    @property
    def id(self) -> str:
        return f"chaos-{self.number}"


@dataclass(frozen=True, slots=True)
class Told:
    """An answer.

    Attributes:
        headers: by their names in small letters.
        whole: it has come to its end; False if the connection ended first.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    whole: bool = True

    @property
    def closes(self) -> bool:
        return self.headers.get("connection") == "close"


class Broken(Exception):
    """A promise was broken; the sentence says which."""


def judge(asked: Asked, told: Told, killed: Collection[int]) -> tuple[Kind, int]:
    """Return how a request ended, and the pid of the process that reports to have run it (0 if none).

    Args:
        killed: the processes that we have killed so far.

    Raises:
        Broken: that must not be.
    """
    if told.headers.get("x-request-id") != asked.id:
        raise Broken(f"{asked.id} was answered with what is owed to {told.headers.get('x-request-id')}")
    text = told.body[:300].decode("latin-1")
    if told.status == 200:
        return _answered(asked, told, killed)
    if not told.whole:
        raise Broken(f"{asked.id}: the answer {told.status} ended in the middle: {text}")
    if told.status == 507 and "The worker died again" in text and asked.rules.retry:
        return Kind.DIED_AGAIN, 0
    if told.status == 507 and "The worker died while" in text and not asked.rules.retry:
        return Kind.DIED, 0
    if told.status == 500 and asked.crash and "it exited with code 7" in text:
        return Kind.CRASHED, 0
    if told.status == 503 and asked.rules.narrow and "is full" in text and "retry-after" in told.headers:
        return Kind.QUEUE_FULL, 0
    if told.status == 504 and (asked.deadline or asked.rules.timeout):
        return Kind.EXPIRED, 0
    raise Broken(f"{asked.id} was answered {told.status}: {text}")


def _answered(asked: Asked, told: Told, killed: Collection[int]) -> tuple[Kind, int]:
    try:
        _, generation, pid = map(int, told.body.split(b" ", 3)[:3])
    except ValueError:
        raise Broken(f"{asked.id} was answered with no account: {told.body[:80]!r}") from None
    right = b"%d %d %d %s" % (asked.number, generation, pid, asked.words[::-1])
    if told.body != right if told.whole else not right.startswith(told.body):
        raise Broken(f"{asked.id} of {len(asked.words)} bytes was answered wrong: {told.body[:80]!r}")
    # A daemon that has been replaced answers one more request of each connection, and says that it is the last.
    if generation < asked.generation and not told.closes:
        raise Broken(f"{asked.id} was answered by archive {generation}, and {asked.generation} had been acknowledged")
    permitted = {asked.version} if asked.version else frozenset().union(*asked.routes[asked.since :])
    if permitted and generation not in permitted and not (told.closes and not asked.version):
        raise Broken(f"{asked.id} was answered by version {generation}, and {sorted(permitted)} may")
    if told.whole:
        return Kind.RIGHT, pid
    if not asked.rules.pieces or pid not in killed:
        raise Broken(f"{asked.id}: the answer ended in the middle, and process {pid} was not killed")
    return Kind.CUT_OFF, pid


def judge_runs(kind: Kind, rules: Rules, pid: int, runs: Sequence[int], killed: Collection[int]) -> None:
    """Hold an ending against the processes that began to run the request, in order.

    Args:
        pid: which process says that it has run it, 0 if none does.

    Raises:
        Broken: it was run too often, or not at all, or again though its worker lived.
    """
    most = 2 if rules.retry else 1
    if kind in (Kind.HALF_SENT, Kind.QUEUE_FULL):
        most = 0
    if len(runs) > most:
        raise Broken(f"it was run {len(runs)} times, by {runs}")
    if any(earlier not in killed for earlier in runs[:-1]):
        raise Broken(f"it was run again, by {runs}, though nobody had killed the first")
    if pid and (not runs or runs[-1] != pid):
        raise Broken(f"process {pid} has answered it, and {runs} have run it")
    if kind in (Kind.DIED, Kind.DIED_AGAIN) and any(each not in killed for each in runs):
        raise Broken(f"its workers are said to have died, and of {runs} one was not killed")
