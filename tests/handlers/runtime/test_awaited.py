"""Coroutines in TorchServe's form."""

from pathlib import Path

import pytest

from tests.handlers.samples import row, write
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime

CLASS = """
    import asyncio
    class H:
        async def initialize(self, context):
            self.loop = asyncio.get_running_loop()
            self.k = 1
        {way} handle(self, data, context):
            return [self.k for _ in data]
"""


def load(model_dir: Path, source: str) -> Runtime:
    write(model_dir / "later.py", source)
    return Runtime.load(wire.Load("net", "1.0", str(model_dir), "later.py", {}, batch_size=1, threads=1))


def bodies(runtime: Runtime, rows: int = 2) -> list[bytes]:
    return [answer.body for answer in runtime.run([row(b"x")] * rows)]


@pytest.mark.parametrize("way", ["def", "async def"])
def test_the_coroutines_of_a_class_are_awaited(model_dir: Path, way: str) -> None:
    runtime = load(model_dir, CLASS.replace("{way}", way))

    assert bodies(runtime) == [b"1", b"1"]
    runtime.close()


def test_batches_run_on_the_loop_on_which_the_model_was_loaded(model_dir: Path) -> None:
    source = CLASS.replace("{way}", "async def").replace("self.k for", "self.loop is asyncio.get_running_loop() for")
    runtime = load(model_dir, source)

    assert [bodies(runtime, 1) for _ in range(2)] == [[b"true"], [b"true"]]
    runtime.close()


@pytest.mark.parametrize(
    ("body", "notes"),
    [
        pytest.param("if data is None: return calls.append(data)", 0, id="a branch for loading"),
        pytest.param("calls.append(data)", 1, id="none"),
    ],
)
def test_a_coroutine_function_is_called_once_without_data_as_functions_are(
    model_dir: Path, body: str, notes: int
) -> None:
    runtime = load(
        model_dir,
        f"calls = []\nasync def handle(data, context):\n    {body}\n"
        "    return [str(each is None) for each in calls[:1] for _ in data]\n",
    )

    assert len(runtime.notes) == notes
    assert bodies(runtime) == [b"True", b"True"]
    runtime.close()


def test_an_error_of_a_coroutine_is_told_as_that_of_a_function(model_dir: Path) -> None:
    runtime = load(model_dir, "async def handle(data, context):\n    return data and [1 / 0]\n")

    [answer] = runtime.run([row(b"x")])

    assert answer.status == 503
    assert b"ZeroDivisionError" in answer.body
    runtime.close()


def test_an_envelope_opens_what_a_coroutine_gets(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TS_SERVICE_ENVELOPE", "json")
    runtime = load(model_dir, "async def handle(data, context):\n    return data and [each + 1 for each in data]\n")

    [answer] = runtime.run([row(b'{"instances": [1, 2]}', "application/json")])

    assert answer.body == b'{"predictions": [2, 3]}'
    runtime.close()
