"""A handler raises for a batch: its rows run again, each alone, and only those fail that are to blame."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.runtime.failures import Allowance
from tsctl.handlers.runtime.runtime import Runtime, SendPieces, no_pieces
from tsctl.handlers.runtime.warmup import warm_up
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import PredictionException, UnreadablePayload
from tsctl.handlers.sdk.loader import EntryPoint


class Spelling(BaseHandler):
    """Answers each row with its id, a header and its text; fails as the text says. Overrides two stages."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[str]] = []

    def preprocess(self, data: list[Any]) -> Any:
        texts = [bytes(each.pop("body")).decode() for each in data]
        self.batches.append(texts)
        return texts

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        for text in data:
            if text == "bad":
                raise ValueError("cannot spell this")
            if text == "too many" and len(data) > 1:
                raise MemoryError("no room for so many")
            if text == "refused":
                raise PredictionException("not this one", 422)
            if text == "unreadable":
                raise UnreadablePayload("no words")
            if text == "leave":
                raise SystemExit(3)
        return data

    def postprocess(self, data: Any) -> list[Any]:
        assert self.context is not None
        context = self.context
        for idx, text in enumerate(data):
            context.set_response_header(idx, "X-Text", text)
        names = [context.get_request_header(idx, "X-Name") for idx in range(len(data))]
        return [f"{context.get_request_id(idx)} {names[idx]} {text}" for idx, text in enumerate(data)]


def rows_of(*texts: str) -> list[wire.Row]:
    named = [(f"r{number}", text) for number, text in enumerate(texts)]
    return [wire.Row(name, [("X-Name", name.upper())], [("body", "", text.encode())]) for name, text in named]


def runtime_of(handler: BaseHandler) -> Runtime:
    return Runtime(EntryPoint(handler, handler.handle), context_of(Path("/")))


def told(answers: list[wire.Answer]) -> list[tuple[int, str]]:
    return [(answer.status, bytes(answer.body).decode()) for answer in answers]


def run(
    handle: Callable[[Any, Context], Any], count: int = 3, *, isolate: bool | None = True, send: SendPieces = no_pieces
) -> tuple[Runtime, list[wire.Answer]]:
    """Run a batch of empty rows through a handler that is a function."""
    runtime = Runtime(EntryPoint(None, handle), context_of(Path("/")), isolate)
    return runtime, runtime.run([row(b"", request_id=f"r{number}") for number in range(count)], send)


def test_only_the_row_fails_for_which_the_handler_raises_alone_too() -> None:
    handler = Spelling()
    runtime = runtime_of(handler)

    answers = runtime.run(rows_of("a", "bad", "c"))

    assert told(answers) == [
        (200, "r0 R0 a"),
        (503, "Prediction failed: ValueError: cannot spell this (Request r1)"),
        (200, "r2 R2 c"),
    ]
    assert [answer.headers for answer in answers] == [[("X-Text", "a")], [], [("X-Text", "c")]]
    assert handler.batches == [["a", "bad", "c"], ["a"], ["bad"], ["c"]]


def test_what_became_of_the_batch_is_counted_until_the_next() -> None:
    runtime = runtime_of(Spelling())

    runtime.run(rows_of("bad", "b", "bad"))
    assert runtime.isolation is not None
    assert runtime.isolation.failed == 2
    assert runtime.isolation.seconds > 0

    runtime.run(rows_of("a", "b"))
    assert runtime.isolation is None


def test_rows_for_which_memory_does_not_suffice_together_run_alone() -> None:
    answers = runtime_of(Spelling()).run(rows_of("a", "too many"))

    assert [answer.status for answer in answers] == [200, 200]


def test_nothing_keeps_what_the_failed_batch_had_in_memory() -> None:
    class Activations:
        pass

    alive: list[int] = []
    seen: list[weakref.ref[Activations]] = []

    def handle(data: list[Any], context: Context) -> list[Any]:
        alive.append(sum(each() is not None for each in seen))
        here = Activations()
        seen.append(weakref.ref(here))
        if len(data) > 1:
            raise MemoryError
        return [""]

    gc.disable()
    try:
        _, answers = run(handle)
    finally:
        gc.enable()

    assert [answer.status for answer in answers] == [200] * 3
    assert alive == [0] * 5, "three rows, two, and each alone"


def test_a_row_that_alone_proves_unreadable_is_answered_400() -> None:
    answers = runtime_of(Spelling()).run(rows_of("a", "unreadable"))

    assert told(answers) == [(200, "r0 R0 a"), (400, "no words (Request r1)")]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param("refused", 422, id="a PredictionException stands"),
        pytest.param("leave", 503, id="SystemExit is no row's fault"),
    ],
)
def test_what_a_handler_raises_on_purpose_is_for_the_whole_batch(text: str, status: int) -> None:
    handler = Spelling()

    answers = runtime_of(handler).run(rows_of("a", text))

    assert [answer.status for answer in answers] == [status] * 2
    assert handler.batches == [["a", text]]


def test_a_result_of_the_wrong_length_is_for_the_whole_batch() -> None:
    sizes: list[int] = []

    def handle(data: list[Any], context: Context) -> list[Any]:
        sizes.append(len(data))
        return ["one"]

    _, answers = run(handle)

    assert [answer.status for answer in answers] == [503] * 3
    assert sizes == [3]


@pytest.mark.parametrize("status", [429, 200])
def test_a_status_that_was_set_before_stands_for_the_whole_batch(status: int) -> None:
    sizes: list[int] = []

    def handle(data: list[Any], context: Context) -> list[Any]:
        sizes.append(len(data))
        context.set_response_status(status, idx=1)
        raise ValueError("after that")

    runtime, _ = run(handle)

    assert sizes == [3]
    assert runtime.isolation is None


def test_a_batch_that_has_sent_pieces_is_not_run_again() -> None:
    sizes: list[int] = []

    def handle(data: list[Any], context: Context) -> list[Any]:
        sizes.append(len(data))
        assert context.send_pieces is not None
        context.send_pieces(["piece"] * len(data))
        raise ValueError("in the middle")

    _, answers = run(handle)

    assert [answer.status for answer in answers] == [503] * 3
    assert sizes == [3]


def test_a_row_alone_sends_its_pieces_to_its_own_request() -> None:
    sent: list[list[tuple[int, bytes]]] = []

    def handle(data: list[Any], context: Context) -> list[Any]:
        if len(data) > 1:
            raise ValueError("not together")
        assert context.send_pieces is not None
        context.send_pieces([f"piece of {context.get_request_id()}"])
        return ["rest"]

    run(handle, 2, send=lambda pieces: sent.append([(place, bytes(piece.body)) for place, piece in pieces]))

    assert sent == [[], [(0, b"piece of r0")], [], [(1, b"piece of r1")]], "an empty one before each row: it goes on"


def test_what_the_failed_batch_left_running_answers_nobody() -> None:
    kept: list[Any] = []
    sent: list[list[tuple[int, wire.Answer]]] = []

    def handle(data: list[Any], context: Context) -> list[Any]:
        if len(data) > 1:
            kept.append(context.send_pieces)
            raise ValueError("a thread of mine goes on")
        kept[0](["late"], [1])
        return ["rest"]

    _, answers = run(handle, 2, send=sent.append)

    assert told(answers) == [(200, "rest")] * 2
    assert sent == [[], []]


@pytest.mark.parametrize(
    ("isolate", "sizes"),
    [
        pytest.param(None, [2], id="a handle of the user's own is run once: it may write or charge"),
        pytest.param(True, [2, 1, 1], id="unless it is allowed"),
    ],
)
def test_whose_handle_runs_again(isolate: bool | None, sizes: list[int]) -> None:
    seen: list[int] = []

    def handle(data: list[Any], context: Context) -> list[Any]:
        seen.append(len(data))
        raise ValueError("always")

    _, answers = run(handle, 2, isolate=isolate)

    assert [answer.status for answer in answers] == [503] * 2
    assert seen == sizes


def test_it_may_be_forbidden_where_handle_is_ours() -> None:
    handler = Spelling()
    runtime = Runtime(EntryPoint(handler, handler.handle), context_of(Path("/")), False)

    answers = runtime.run(rows_of("a", "bad"))

    assert [answer.status for answer in answers] == [503] * 2


def test_the_load_frame_says_whether(model_dir: Path) -> None:
    source = "def handle(data, context):\n    if data and len(data) > 1: raise ValueError\n    return data and ['']\n"
    (model_dir / "mine.py").write_text(source)
    runtimes = [
        Runtime.load(wire.Load("net", "1.0", str(model_dir), "mine.py", {}, 2, 1, isolate=isolate))
        for isolate in (None, True)
    ]

    statuses = [[answer.status for answer in each.run(rows_of("a", "b"))] for each in runtimes]

    assert statuses == [[503, 503], [200, 200]]


def test_a_warm_up_finds_out_that_a_handler_cannot_batch(model_dir: Path) -> None:
    (model_dir / "sample").write_text("too many")
    load = wire.Load("net", "1.0", str(model_dir), "h.py", {}, batch_size=2, threads=1)

    with pytest.raises(ValueError, match="no room for so many"):
        warm_up(runtime_of(Spelling()), load, {"warmup": "sample"})


def test_when_the_allowance_is_used_up_a_batch_fails_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def handle(data: list[Any], context: Context) -> list[Any]:
        nonlocal now
        now += 2.0
        if len(data) > 1:
            raise ValueError("not together")
        return [""]

    monkeypatch.setattr("tsctl.handlers.runtime.runtime.time.perf_counter", lambda: now)
    runtime = Runtime(EntryPoint(None, handle), context_of(Path("/")), True)
    rows = rows_of("a", "b", "c")

    def statuses() -> set[int]:
        return {answer.status for answer in runtime.run(rows)}

    assert statuses() == {200}  # six seconds alone, and there was one
    assert statuses() == {503}
    now += 45.0
    assert statuses() == {503}
    now += 5.0
    assert statuses() == {200}


def test_beside_one_another_two_runtimes_have_one_allowance() -> None:
    runtime = runtime_of(Spelling())

    assert runtime.beside()._allowance is runtime._allowance


@pytest.mark.parametrize(
    ("now", "left"),
    [
        pytest.param(100.0, 1.0, id="at first there is what a quiet time saves"),
        pytest.param(1000.0, 1.0, id="and it is never more"),
    ],
)
def test_what_a_new_allowance_has(now: float, left: float) -> None:
    assert Allowance(100.0, share=0.1, saved=1.0).left(now) == left


def test_an_allowance_earns_a_share_of_the_time_and_pays_its_debt_first() -> None:
    allowance = Allowance(0.0, share=0.1, saved=1.0)

    allowance.spend(10.0, 14.0)

    assert allowance.left(14.0) == pytest.approx(-3.0)
    assert allowance.left(43.0) == pytest.approx(-0.1)
    assert allowance.left(45.0) == pytest.approx(0.1)
    assert allowance.left(500.0) == 1.0


def test_in_the_long_run_no_more_than_its_share_is_spent() -> None:
    now, spent = 0.0, 0.0
    allowance = Allowance(now, share=0.1, saved=1.0)
    while now < 10_000.0:
        now += 0.5  # every batch fails, and its rows would take a second
        if allowance.left(now) > 0:
            allowance.spend(now, now + 1.0)
            now, spent = now + 1.0, spent + 1.0

    assert 0.09 * now < spent <= 0.1 * now + 1.0 + 1.0


def test_the_traceback_of_a_batch_names_the_rows_that_it_failed() -> None:
    runtime = runtime_of(Spelling())

    runtime.run(rows_of("a", "bad", "c"))

    (failure,) = runtime.failures
    assert failure.rows == [1]
    assert failure.traceback.startswith("Traceback (most recent call last):")
    assert failure.traceback.endswith("ValueError: cannot spell this")


def test_a_batch_that_fails_as_one_has_one_traceback() -> None:
    def handle(data: list[Any], context: Context) -> list[Any]:
        raise KeyError("none")

    runtime, _ = run(handle, isolate=False)

    assert [failure.rows for failure in runtime.failures] == [[0, 1, 2]]


def test_items_that_are_exceptions_have_tracebacks_and_a_good_batch_has_none() -> None:
    broken = True

    def handle(data: list[Any], context: Context) -> list[Any]:
        return [ValueError("one"), "good", KeyError("two")] if broken else ["good"] * 3

    runtime, _ = run(handle)
    assert [failure.rows for failure in runtime.failures] == [[0], [2]]

    broken = False
    runtime.run([row(b"", request_id="r")] * 3)
    assert runtime.failures == []


def test_a_large_batch_sends_a_few_tracebacks() -> None:
    runtime, answers = run(lambda data, context: [ValueError(str(number)) for number in range(20)], 20)

    assert len(answers) == 20 and len(runtime.failures) == wire.MOST_FAILURES
