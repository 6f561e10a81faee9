"""Nothing that a handler raises, returns, prints or sets ends its worker: each row is answered, and the next one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from tests.handlers import hostile
from tests.handlers.process.row_daemon import RowDaemon, row_worker
from tests.handlers.samples import row
from tsctl.handlers import wire
from tsctl.handlers.sdk.context import Context

acts: list[hostile.Act] = []  # the next call's
HANDLERS: dict[wire.Mode, str] = {
    "batch": "def handle(data, context): return play(data, context)",
    "continuous": "def handle(data, context): return play(data, context)",
    "async": "async def handle(data, context): return play(data, context)",
}
IMPORT = "from tests.handlers.process.test_hostile_handlers import play\n"


def play(data: Any, context: Context) -> Any:
    """Do what the test wants, once; then answer every row, with a context as it was."""
    if data is None:
        return None
    context.stopping_criteria = None
    if acts:
        return acts.pop()(data, context)
    return ["well"] * len(data)


@contextmanager
def worker(model_dir: Path, mode: wire.Mode) -> Iterator[RowDaemon]:
    with row_worker(model_dir, IMPORT + HANDLERS[mode], mode) as daemon:
        assert isinstance(daemon.loaded, wire.Loaded), daemon.loaded
        yield daemon


def ask(daemon: RowDaemon, number: int, rows: int) -> list[wire.Answer]:
    """Send a batch; return its answers, read as the daemon reads them, which kills the worker for a broken one."""
    daemon.tell(wire.Predict(number, [row(b"", request_id=f"r{each}") for each in range(rows)]))
    [done] = daemon.hear_end(number)
    return done.answers


@pytest.mark.parametrize("mode", ["batch", "continuous", "async"])
def test_whatever_a_handler_does_its_worker_answers(mode: wire.Mode, model_dir: Path) -> None:
    rows = 3 if mode == "batch" else 1
    with worker(model_dir, mode) as daemon:
        number = 0

        @settings(
            max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
        )
        @given(act=hostile.handlers())
        @example(act=hostile.rename)
        def check(act: hostile.Act) -> None:
            nonlocal number
            acts[:] = [act]
            assert len(ask(daemon, number + 1, rows)) == rows
            acts.clear()
            answers = ask(daemon, number + 2, rows)
            number += 2
            if mode != "batch":  # whose context has what the call before has set there
                assert [each.status for each in answers] == [200] * rows, answers

        check()


def test_half_an_emoji_in_an_exception_fails_its_row_alone(model_dir: Path) -> None:
    handler = """
        import json
        def handle(data, context):
            texts = data and [json.loads(bytes(each["body"]))["text"] for each in data]
            for text in texts or ():
                if "party" in text:
                    raise ValueError(f"unknown word: {text}")
            return texts
    """
    bodies = [b'{"text": "well"}'] * 7 + [b'{"text": "party \\ud83c"}']
    with row_worker(model_dir, handler, "batch", isolate=True) as daemon:
        daemon.tell(wire.Predict(1, [row(body, request_id="r") for body in bodies]))
        [done] = daemon.hear_end(1)

    assert [each.status for each in done.answers] == [200] * 7 + [503]
    assert b"unknown word: party ?" in done.answers[7].body


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "raise KeyboardInterrupt", "asyncio.current_task().cancel()"])
def test_a_task_of_the_handler_s_own_does_not_end_the_loop_of_the_rows(code: str, model_dir: Path) -> None:
    handler = f"""
        import asyncio
        async def fail():
            {code}
        async def handle(data, context):
            task = asyncio.create_task(fail())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return ["well"]
    """
    with row_worker(model_dir, handler, "async") as daemon:
        daemon.begin(r1=b"", r2=b"")
        first, second = daemon.hear_end(1, 2)

    assert [each.answers[0].status for each in (first, second)] == [200, 200]
