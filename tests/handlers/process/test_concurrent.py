"""Rows as tasks on a worker's event loop, over a real socketpair."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.handlers.process.row_daemon import RowDaemon, row_worker
from tsctl.handlers import wire

# `wait` waits for `go`; `stream` sends pieces until it is cancelled.
TALKS = """
    import asyncio
    from tsctl.handlers.sdk.streaming import send_intermediate_predict_response
    from tsctl.handlers.sdk.errors import PredictionException
    class Talks:
        def initialize(self, context):
            loop = asyncio.get_event_loop()
            self.go = loop.run_until_complete(self.make())
            self.cancelled = 0
        async def make(self):
            return asyncio.Event()
        async def handle(self, data, context):
            text = bytes(data[0]["body"]).decode()
            if text == "wait":
                try:
                    await self.go.wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
                    raise
            elif text == "go":
                self.go.set()
            elif text == "raise":
                raise ValueError("no")
            elif text == "refuse":
                raise PredictionException("not so", 418)
            elif text == "wrong":
                return "no list"
            elif text.startswith("stream"):
                for number in range(int(text[6:])):
                    send_intermediate_predict_response([f"{number} "], context.request_ids, "", 200, context)
                    await asyncio.sleep(0)
            elif text == "cancelled":
                return [str(self.cancelled)]
            context.set_response_header(0, "mine", text)
            return [f"{text} {context.get_request_id(0)}"]
"""


@pytest.fixture
def daemon(model_dir: Path) -> Iterator[RowDaemon]:
    with row_worker(model_dir, TALKS, "async") as daemon:
        yield daemon


def test_answers_come_as_they_are_ready_each_with_its_own_context(daemon: RowDaemon) -> None:
    daemon.begin(r1=b"wait", r2=b"wait", r3=b"hello")
    daemon.hear_end(3)
    assert not daemon.ends[1] and not daemon.ends[2]

    daemon.begin(r4=b"go")
    daemon.hear_end(1, 2, 4)

    assert [daemon.body(number) for number in (1, 2, 3, 4)] == [b"wait r1", b"wait r2", b"hello r3", b"go r4"]
    assert ("mine", "hello") in daemon.ends[3][0].answers[0].headers


def test_a_row_streams_beside_others(daemon: RowDaemon) -> None:
    daemon.begin(r1=b"stream3", r2=b"stream2", r3=b"wait")
    daemon.hear_end(1, 2)

    assert daemon.body(1) == b"0 1 2 stream3 r1"
    assert daemon.body(2) == b"0 1 stream2 r2"
    # The fixture closes the connection while r3 waits: it is cancelled, and the worker ends.


def test_a_cancelled_row_ends_and_its_coroutine_is_cancelled(daemon: RowDaemon) -> None:
    daemon.begin(r1=b"wait", r2=b"hello")
    daemon.hear_end(2)

    daemon.tell(wire.Cancel(1), wire.Cancel(9))
    [end] = daemon.hear_end(1)
    daemon.begin(r3=b"cancelled")
    daemon.hear_end(3)

    assert end.answers[0].error
    assert daemon.body(3) == b"1"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"raise", 503, b"Prediction failed: ValueError: no"),
        (b"refuse", 418, b"not so"),
        (b"wrong", 503, b"Invalid model predict output"),
    ],
)
def test_an_error_is_the_answer_to_its_row_only(daemon: RowDaemon, body: bytes, status: int, says: bytes) -> None:
    daemon.begin(r1=body, r2=b"hello")
    end, _ = daemon.hear_end(1, 2)

    assert end.answers[0].status == status
    assert says in end.answers[0].body
    assert daemon.body(2) == b"hello r2"
    assert end.failures[0].traceback


def test_a_client_that_does_not_read_is_cut_and_the_others_are_served(daemon: RowDaemon) -> None:
    daemon.unread.add(1)
    daemon.begin(r1=b"stream1000000", r2=b"hello")
    daemon.hear_end(1, 2)

    assert daemon.cut == [1]
    daemon.begin(r3=b"stream1000000")
    daemon.hear(lambda: len(daemon.pieces[3]) > 0)
    daemon.tell(wire.Credit(3, 0, 0))  # its client has gone
    daemon.hear_end(3)


@pytest.mark.parametrize(
    "handler",
    [
        "def handle(data, context): return data",
        "class Own:\n    def initialize(self, context): pass\n    def handle(self, data, context): return data",
        "async def predict(text: str) -> str: return text",
    ],
    ids=["a function", "a class", "a typed function"],
)
def test_a_handler_that_is_no_coroutine_is_not_loaded(model_dir: Path, handler: str) -> None:
    with row_worker(model_dir, handler, "async") as daemon:
        assert isinstance(daemon.loaded, wire.LoadFailed)
        assert "needs `async def handle(self, data, context)`" in daemon.loaded.error


OF_A_LOOP = """
    import asyncio
    class Own:
        async def initialize(self, context):
            self.loop = asyncio.get_running_loop()
        async def handle(self, data, context):
            return [str(self.loop is asyncio.get_running_loop())]
"""


@pytest.mark.parametrize(
    ("handler", "answer"),
    [
        pytest.param(
            "async def handle(data, context):\n    return data and [bytes(data[0]['body'])]", b"x", id="function"
        ),
        pytest.param(OF_A_LOOP, b"True", id="an async initialize runs on the loop of the rows"),
    ],
)
def test_other_handlers_serve(model_dir: Path, handler: str, answer: bytes) -> None:
    with row_worker(model_dir, handler, "async") as daemon:
        daemon.begin(r1=b"x")
        daemon.hear_end(1)

        assert daemon.body(1) == answer
