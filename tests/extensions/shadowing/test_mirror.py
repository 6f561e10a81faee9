"""A shadow gets copies in idle time only; clients see nothing of it, and no copy is kept beyond its bounds."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import PredictionFailed
from tsctl.daemon.core.job import Job, Piece, Reply
from tsctl.daemon.extensions.shadowing import mirror as mirrors
from tsctl.daemon.extensions.shadowing.idle_time import QUIET
from tsctl.daemon.extensions.shadowing.mirror import Mirror
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.routing.route import Route
from tsctl.daemon.models.version import ModelVersion

ASKED = RequestFacts("POST", "/predictions/m", 0.0, None, "", None)


class Shadowed:
    """A version that answers clients, its shadow, and the mirror between them, on one clock."""

    def __init__(self, sample: float = 1.0, **settings: Any) -> None:
        self.clock = FakeClock()
        self.main = StubVersion(clock=self.clock, version="1.0", **settings)
        self.shadow = StubVersion(clock=self.clock, version="2.0")
        self.counts: Counter[str] = Counter()
        self.told: list[tuple[str, str]] = []
        route = Route(weights=(("1.0", 1.0),), shadow="2.0", sample=sample)
        self.present = True
        self.mirror = Mirror(
            route, self.clock, Random(1), self._others, lambda: self.shadow.model if self.present else None,
            self.counts, lambda request, text: self.told.append((request, text)),
        )  # fmt: skip

    def _others(self) -> tuple[Iterable[ModelVersion], Iterable[ModelVersion]]:
        return [self.main.model, self.shadow.model], [self.main.model]

    def ask(self, name: str, body: bytes = b"x") -> Job:
        """Let a request come to the main version, as the routes of the API do."""
        job = self.main.client.job(name, body, unnamed=True)
        self.mirror.watch(job, ASKED)
        self.main.model.submit(job)
        self.clock.settle()
        return job

    @property
    def copied(self) -> list[str]:
        """The requests that the shadow was ever given."""
        return [job.id for worker in self.shadow.engine.workers for batch in worker.batches for job in batch.jobs]


def begun(
    both: Shadowed,
    deliver: Callable[[Reply], None] = lambda reply: None,
    stream: Callable[[Reply], None] = lambda piece: None,
) -> Job:
    """Return a copied job whose worker is about to answer."""
    job = Job("a", [], [], both.clock.now(), deliver, stream, unnamed=True)
    both.mirror.watch(job, ASKED)
    job.send()
    return job


@pytest.fixture
def both() -> Shadowed:
    return Shadowed()


def test_a_copy_begins_when_its_client_has_its_answer(both: Shadowed) -> None:
    both.ask("a")
    both.clock.advance(1.0)
    assert (both.main.client.answered, both.copied) == (["a"], [])
    both.clock.advance(QUIET)

    assert (both.main.client.answered, both.copied) == (["a"], ["a"])
    both.clock.advance(1.0)
    assert both.counts == {"same": 1}
    assert both.main.client.answered == ["a"], "the client was answered twice"


def test_a_client_that_asks_again_at_once_never_meets_a_copy(both: Shadowed) -> None:
    for number in range(20):
        both.ask(str(number))
        both.clock.advance(1.0 + QUIET / 2)
    assert (len(both.main.client.answered), both.copied) == (20, [])

    both.clock.advance(QUIET)

    assert both.copied == ["0"], "now there is a pause"


def test_requests_that_wait_anywhere_go_before_copies(both: Shadowed) -> None:
    both.ask("a")
    both.clock.advance(0.9)
    both.shadow.submit("named")  # somebody asks the shadow by its name
    both.shadow.submit("named too")
    both.clock.advance(0.5)
    assert "a" not in both.copied

    both.clock.advance(3.0)

    assert both.copied == ["named", "named too", "a"]


def test_a_sample_is_drawn() -> None:
    both = Shadowed(sample=0.25)

    for number in range(100):
        both.ask(str(number))
        both.clock.advance(3.0)

    draws = Random(1)
    assert len(both.copied) == sum(draws.random() < 0.25 for _ in range(100))


def test_answers_that_differ_are_told_with_their_request(both: Shadowed) -> None:
    both.shadow.engine.answer = lambda job: Reply(200, b"other")
    both.ask("a")
    both.clock.advance(2.5)
    both.shadow.engine.answer = lambda job: Reply(503, b"no luck", error=PredictionFailed.kind)
    both.ask("b")
    both.clock.advance(2.5)

    assert both.counts == {"different": 1, "failed": 1}
    assert [request for request, _ in both.told] == ["a", "b"]
    assert both.told[1][1] == "the shadow failed with 503: no luck"


def test_a_request_that_failed_is_not_compared(both: Shadowed) -> None:
    both.main.engine.answer = lambda job: Reply(503, b"no luck", error=PredictionFailed.kind)

    both.ask("a")
    both.clock.advance(3.0)

    assert (both.copied, both.counts) == ([], {"dropped": 1})


def test_copies_have_a_bound_beyond_which_requests_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "MOST_COPIES", 2)
    both = Shadowed()

    for name in "abc":
        both.ask(name)
    both.clock.advance(20.0)

    assert (both.main.client.answered, both.copied) == (["a", "b", "c"], ["a", "b"])
    assert both.counts == {"dropped": 1, "same": 2}


def test_bytes_have_a_bound_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "MOST_BYTES", 10)
    both = Shadowed()

    both.ask("a", b"123456")
    both.ask("b", b"123456")
    both.clock.advance(20.0)

    assert both.counts["dropped"] == 2 - len(both.copied)
    assert "b" not in both.copied


def test_the_copy_of_a_client_that_leaves_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirrors, "MOST_COPIES", 2)
    both = Shadowed(capacity=1)
    both.ask("a")

    both.main.model.abandon(both.ask("b"))
    both.ask("c")
    both.clock.advance(20.0)

    assert both.copied == ["a", "c"]


@pytest.mark.parametrize("gone", ["unregistered", "stopping", "without workers"])
def test_copies_for_a_shadow_that_is_gone_are_dropped(gone: str, both: Shadowed) -> None:
    both.ask("a")
    if gone == "unregistered":
        both.present = False
    elif gone == "stopping":
        both.shadow.model.stop()
    else:
        both.shadow.model.scale(0, 0)

    both.clock.advance(5.0)

    assert (both.main.client.answered, both.copied, both.counts) == (["a"], [], {"dropped": 1})


def test_a_closed_mirror_copies_nothing_and_drops_what_waits(both: Shadowed) -> None:
    both.ask("a")
    both.ask("b")
    both.clock.advance(1.0)

    both.mirror.close()
    both.ask("c")
    both.clock.advance(20.0)

    assert (both.main.client.answered, both.copied) == (["a", "b", "c"], [])


class _CountedFlow:
    """The source of a stream; counts how often further pieces were refused."""

    def __init__(self) -> None:
        self.wanted = False
        self.refused = 0

    def drained(self) -> None:
        """Do nothing: the test makes the pieces."""

    def refuse(self) -> None:
        self.refused += 1


def _grown(take: Callable[[Reply], None], pieces: int, size: int) -> tuple[int, _CountedFlow]:
    """Stream an answer of so many pieces; return the most bytes that were kept meanwhile."""
    flow = _CountedFlow()
    tracemalloc.start()
    for _ in range(pieces):
        take(Piece(200, bytes(bytearray(size)), flow=flow))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most, flow


@pytest.mark.parametrize(("pieces", "size"), [(2000, 1024), (20_000, 1)])
def test_a_stream_is_not_kept_beyond_the_bound_while_it_grows(
    monkeypatch: pytest.MonkeyPatch, pieces: int, size: int
) -> None:
    monkeypatch.setattr(mirrors, "MOST_BYTES", 100_000)
    both = Shadowed()
    told: list[Reply] = []
    passed: list[int] = []
    job = begun(both, told.append, lambda piece: passed.append(len(piece.body)))
    passed.extend([0] * pieces)  # the list itself is no part of what is measured
    passed.clear()

    most, flow = _grown(job.stream, pieces, size)
    job.answer(Reply(200, b"end"))
    both.clock.advance(20.0)

    assert most < 400_000 + pieces * 9, "the daemon kept the client's stream"
    assert (sum(passed), len(told), flow.refused) == (pieces * size, 1, 0), "the client's answer has changed"
    assert (both.copied, both.counts) == ([], {"dropped": 1})


@pytest.mark.parametrize(("pieces", "size"), [(2000, 1024), (20_000, 1)])
def test_a_stream_of_the_shadow_is_not_kept_beyond_the_bound_and_refused(
    monkeypatch: pytest.MonkeyPatch, pieces: int, size: int
) -> None:
    monkeypatch.setattr(mirrors, "MOST_BYTES", 100_000)
    both = Shadowed()
    both.ask("a")
    both.clock.advance(1.0 + QUIET)
    (copy,) = (job for worker in both.shadow.engine.workers for batch in worker.in_flight for job in batch.jobs)

    most, flow = _grown(copy.stream, pieces, size)
    assert most < 400_000, "the daemon kept the shadow's stream"
    assert flow.refused, "the shadow's worker goes on for nobody"
    both.clock.advance(20.0)

    assert both.counts == {"dropped": 1}
    both.ask("b")
    both.clock.advance(20.0)
    assert both.counts == {"dropped": 1, "same": 1}, "one that was too large has kept the room"


def test_streams_within_the_bound_are_compared(both: Shadowed) -> None:
    job = begun(both)
    both.shadow.engine.answer = lambda job: Reply(200, b"onetwo")

    job.stream(Piece(200, b"one"))
    job.answer(Reply(200, b"two"))
    both.clock.advance(20.0)

    assert both.counts == {"same": 1}
