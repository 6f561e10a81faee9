"""The spans that wait for a collector; where the thread does not matter, the test does its work."""

import threading
from collections.abc import Sequence

import pytest

from tsctl.daemon.extensions.tracing.buffer import MOST_AT_ONCE, MOST_WAITING, SpanBuffer
from tsctl.daemon.extensions.tracing.context import TraceContext
from tsctl.daemon.extensions.tracing.tracer import INTERNAL, Span

SPAN = Span("queued", TraceContext("1" * 32, "2" * 16), "", INTERNAL, 1.0, 2.0, {})
NEVER = 1e6  # seconds


class FakeSender:
    """A collector.

    Attributes:
        failure: the answer to all spans; None while the collector takes them.
        open: cleared while the collector does not answer.
    """

    def __init__(self, failure: str | None = None) -> None:
        self.failure = failure
        self.taken: list[int] = []
        self.asked = threading.Event()
        self.open = threading.Event()
        self.open.set()
        self.closed = False

    def send(self, spans: Sequence[Span]) -> str | None:
        self.asked.set()
        self.open.wait(10)
        if self.failure == "raise":
            raise ValueError("a bug")
        if self.failure is None:
            self.taken.append(len(spans))
        return self.failure

    def close(self) -> None:
        self.closed = True
        self.open.set()


@pytest.fixture
def told() -> list[str]:
    return []


def without_thread(sender: FakeSender, told: list[str], monkeypatch: pytest.MonkeyPatch) -> SpanBuffer:
    monkeypatch.setattr(threading.Thread, "start", lambda self: None)
    return SpanBuffer(sender, told.append)


def test_spans_are_sent_in_order_and_not_too_many_at_once(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sender = FakeSender()
    spans = without_thread(sender, told, monkeypatch)
    for _ in range(MOST_AT_ONCE + 1):
        spans.offer(SPAN)

    spans.send_some()
    spans.send_some()

    assert sender.taken == [MOST_AT_ONCE, 1]
    assert (spans.counts, told) == ({"sent": MOST_AT_ONCE + 1, "lost": 0, "dropped": 0}, [])


def test_a_full_buffer_drops_further_spans_and_counts_them(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    spans = without_thread(FakeSender(), told, monkeypatch)

    for _ in range(MOST_WAITING + 3):
        spans.offer(SPAN)

    assert repr(spans) == f"<SpanBuffer {MOST_WAITING} waiting, {{'sent': 0, 'lost': 0, 'dropped': 3}}>"


def test_a_collector_that_is_away_is_told_once_until_it_is_back(
    told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = FakeSender()
    spans = without_thread(sender, told, monkeypatch)

    for failure in ("no answer", "no answer", None, "raise", "no answer"):
        sender.failure = failure
        spans.offer(SPAN)
        spans.send_some()

    assert told == [
        "traces are lost until the collector takes them again: no answer",
        "traces are lost until the collector takes them again: ValueError: a bug",
    ]
    assert spans.counts == {"sent": 1, "lost": 4, "dropped": 0}


def test_the_last_spans_are_sent_before_the_end(told: list[str]) -> None:
    sender = FakeSender()
    spans = SpanBuffer(sender, told.append, delay=NEVER)
    spans.offer(SPAN)
    spans.offer(SPAN)

    spans.close(patience=10.0)

    assert sender.taken == [2]
    assert sender.closed


def test_the_end_does_not_wait_for_a_collector_that_does_not_answer(told: list[str]) -> None:
    sender = FakeSender("no answer")
    sender.open.clear()
    spans = SpanBuffer(sender, told.append, delay=0.0)
    spans.offer(SPAN)
    assert sender.asked.wait(10)

    spans.close(patience=0.0)

    assert sender.closed


def test_spans_that_were_dropped_by_a_slow_collector_are_told(told: list[str]) -> None:
    sender = FakeSender()
    sender.open.clear()
    spans = SpanBuffer(sender, told.append, delay=0.0)
    spans.offer(SPAN)
    assert sender.asked.wait(10)
    for _ in range(MOST_WAITING + 2):
        spans.offer(SPAN)

    sender.open.set()
    spans.close(patience=10.0)

    assert told == [f"2 spans were dropped: more than {MOST_WAITING} waited for the collector"]
    assert spans.counts == {"sent": MOST_WAITING + 1, "lost": 0, "dropped": 2}


def test_without_spans_there_is_no_thread(told: list[str]) -> None:
    spans = SpanBuffer(FakeSender(), told.append)

    spans.close()

    assert not [thread for thread in threading.enumerate() if thread.name == "traces"]


def test_a_thread_whose_report_raises_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    sender = FakeSender("no answer")
    sent = threading.Event()

    def report(text: str) -> None:
        sender.failure = None
        sent.set()
        raise RuntimeError(text)

    spans = SpanBuffer(sender, report, delay=0.0)
    spans.offer(SPAN)
    assert sent.wait(10)
    sender.asked.clear()
    spans.offer(SPAN)
    assert sender.asked.wait(10)
    spans.close(patience=10.0)

    assert sum(sender.taken) == 1 and "goes on" in caplog.text


def test_spans_are_dropped_while_no_thread_can_be_started(told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = [False, True]

    def start(thread: threading.Thread) -> None:
        if not rooms.pop(0):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    spans = SpanBuffer(FakeSender(), told.append)

    spans.offer(SPAN)
    spans.offer(SPAN)

    assert repr(spans) == "<SpanBuffer 1 waiting, {'sent': 0, 'lost': 0, 'dropped': 1}>"
