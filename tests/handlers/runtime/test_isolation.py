"""What running rows alone may cost, and leaves behind; which rows do is in `conversations/isolation.txt`."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.runtime.failures import failed_together
from tsctl.handlers.runtime.runtime import Allowance, Runtime
from tsctl.handlers.runtime.warmup import warm_up
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.tensor_heads import InferHead


def run(handle: Callable[[Any, Context], Any], count: int = 3) -> tuple[Runtime, list[wire.Answer]]:
    """Run a batch of empty rows through a handler that is a function."""
    runtime = Runtime(EntryPoint(None, handle), context_of(Path("/")), True)
    return runtime, runtime.run([row(b"", request_id=f"r{number}") for number in range(count)])


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


@pytest.mark.parametrize(("cards", "told"), [("11", True), ("12", False)], ids=["equal", "of another parameter"])
def test_an_exception_of_several_requests_is_told_in_full_to_equal_ones_alone(cards: str, told: bool) -> None:
    rows = [wire.Row("r", [], [], InferHead("", {"card": card}, [], [], False)) for card in cards]

    for answer in failed_together(rows, ValueError("no card 1")):
        assert (b"no card 1" in answer.body, b"ValueError" in answer.body) == (told, True)


def test_a_warm_up_finds_out_that_a_handler_cannot_batch(model_dir: Path) -> None:
    def handle(data: list[Any], context: Context) -> list[Any]:
        if len(data) > 1:
            raise MemoryError("no room for so many")
        return [""]

    (model_dir / "sample").write_text("")
    load = wire.Load("net", "1.0", str(model_dir), "h.py", {}, batch_size=2, threads=1)

    with pytest.raises(ValueError, match="no room for so many"):
        warm_up(Runtime(EntryPoint(None, handle), context_of(model_dir), True), load, {"warmup": "sample"})


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

    def statuses() -> set[int]:
        return {answer.status for answer in runtime.run([row(b"")] * 3)}

    assert statuses() == {200}  # six seconds alone, and there was one
    assert statuses() == {503}
    now += 45.0
    assert statuses() == {503}
    now += 5.0
    assert statuses() == {200}


def test_an_allowance_earns_a_share_of_the_time_and_pays_its_debt_first() -> None:
    allowance = Allowance(0.0, share=0.1, saved=1.0)
    assert (allowance.left(0.0), allowance.left(900.0)) == (1.0, 1.0), "what a quiet time saves, and never more"
    runtime = Runtime(EntryPoint(None, print), context_of(Path("/")))
    assert runtime.beside()._allowance is runtime._allowance

    allowance.spend(10.0, 14.0)

    assert allowance.left(14.0) == pytest.approx(-3.0)
    assert allowance.left(43.0) == pytest.approx(-0.1)
    assert allowance.left(45.0) == pytest.approx(0.1)
    assert allowance.left(500.0) == 1.0


def test_a_large_batch_sends_a_few_tracebacks() -> None:
    runtime, answers = run(lambda data, context: [ValueError(str(number)) for number in range(20)], 20)

    assert len(answers) == 20 and len(runtime.failures) == wire.MOST_FAILURES
