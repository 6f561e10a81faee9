"""The process of a trial: its messages, its failures, and its end."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tsctl.daemon.extensions.optimizing import program
from tsctl.daemon.extensions.optimizing.measuring.__main__ import PrintedOutput
from tsctl.daemon.extensions.optimizing.program import TrialFailed, run_trial

pytestmark = pytest.mark.slow
# Reads the order and the body as the program does, and then does what the test says.
READ = "import json, sys, time\norder = json.loads(sys.stdin.readline())\nbody = sys.stdin.read(4)\n"
ROW = '{"optimize": "default", "now": true, "gain": 1.0, "perSecond": 50.0}'


@pytest.fixture
def does(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def put(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(program, "PROGRAM", (sys.executable, "-c", READ + code))


async def run(told: list[str] | None = None) -> program.TrialRows:
    return await run_trial({"seconds": 1}, b"body", dict(os.environ), (told if told is not None else []).append)


async def test_the_order_and_the_body_go_in_and_the_rows_come_out(does: pytest.MonkeyPatch) -> None:
    put(does, f"""
assert order == {{"seconds": 1}} and body == "body"
print(json.dumps({{"stage": "loading", "optimize": "compile", "done": 1, "total": 3}}), flush=True)
print('{{"stage": "done", "rows": [{ROW}]}}', flush=True)
""")  # fmt: skip
    told: list[str] = []

    result = await run(told)

    assert [(row.optimize, row.now, row.per_second) for row in result.rows] == [("default", True, 50.0)]
    assert told == ["loading with compile (2 of 3)"]


async def test_a_worker_may_print_a_line_of_any_length(does: pytest.MonkeyPatch) -> None:
    put(
        does,
        f"""
print('x' * (1 << 23), file=sys.stderr)
print('{{"stage": "done", "rows": [{ROW}]}}', flush=True)
""",
    )

    assert len((await run()).rows) == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(
            'print(json.dumps({"stage": "failed", "message": "the model does not load: no", "details": ""}))',
            "^the model does not load: no$",
            id="it says so",
        ),
        pytest.param("raise ValueError('what')", "^its process ended without a result: ValueError: what$", id="a bug"),
        pytest.param("sys.exit(1)", "^its process ended without a result$", id="without a word"),
        pytest.param("print('{')", "^its process sent an invalid message: ", id="no JSON"),
        pytest.param("print('x' * (1 << 23))", "^its process sent an invalid message: ", id="endless"),
    ],
)
async def test_a_failure_has_its_reason(code: str, message: str, does: pytest.MonkeyPatch) -> None:
    put(does, code)

    with pytest.raises(TrialFailed, match=message):
        await run()


async def test_one_that_takes_too_long_is_ended(does: pytest.MonkeyPatch) -> None:
    put(does, "sys.stdin.read()")
    does.setattr(program, "LONGEST", 0.05)

    with pytest.raises(TrialFailed, match=r"the machine has no idle time$"):
        await run()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("sys.stdin.read(); open(order['end'], 'w').write('closed')", id="it ends when stdin is closed"),
        pytest.param("open(order['end'], 'w').write('deaf'); time.sleep(1000)", id="it is killed"),
    ],
)
async def test_one_that_is_broken_off_has_ended(code: str, does: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(does, f"print(json.dumps({{'stage': 'loading', 'optimize': 'a', 'done': 0, 'total': 1}}), flush=True)\n{code}")
    does.setattr(program, "END_TIME", 0.5)
    begun = asyncio.Event()
    order = {"end": str(tmp_path / "end")}
    trial = asyncio.ensure_future(run_trial(order, b"body", dict(os.environ), lambda text: begun.set()))
    await begun.wait()

    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial

    assert (tmp_path / "end").read_text() in ("closed", "deaf")


def test_an_output_is_printed_once_and_one_that_ends_differently_whole(capsys: pytest.CaptureFixture[str]) -> None:
    begins = "Traceback (most recent call last):\n  File handler.py"
    outputs = PrintedOutput()

    for pid, ends in enumerate(["ValueError: a", "ValueError: a", "ValueError: b"]):
        outputs.print_lines(begins, pid, "stderr")
        outputs.print_lines(f"{ends}\nrefused", pid, "stderr")

    assert capsys.readouterr().err == f"{begins}\nValueError: a\nrefused\n{begins}\nValueError: b\nrefused\n"
