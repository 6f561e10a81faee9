"""A traceback begins at the author's file, and names it as the author does."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import row, write
from tsctl.handlers import wire
from tsctl.handlers.requests.tracebacks import describe_error
from tsctl.handlers.runtime.runtime import Runtime


def run(model_dir: Path, source: str) -> None:
    """Run one batch of one row through a handler file."""
    write(model_dir / "handler.py", source)
    load = wire.Load("net", "1.0", str(model_dir), "handler.py", {}, batch_size=1, threads=1)
    runtime = Runtime.load(load)
    [answer] = runtime.run([row(b"{}", "application/json")])
    runtime.close()
    assert answer.status == 503
    assert str(model_dir).encode() not in answer.body


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("def predict(x: dict) -> str:\n    return x['a']\n", id="a row's function"),
        pytest.param("def predict(x: list[dict]) -> str:\n    return x[0]['a']\n", id="a batch's function"),
        pytest.param("async def predict(x: dict) -> str:\n    return x['a']\n", id="a coroutine"),
        pytest.param("def predict(x: dict) -> str:\n    yield x['a']\n", id="a generator"),
        pytest.param("def handle(data, context):\n    return data and data[0]['a']\n", id="TorchServe's form"),
    ],
)
def test_the_log_shows_one_traceback_that_begins_at_the_handlers_line(
    model_dir: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(model_dir, source)

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].startswith('  File "handler.py", line 2, in ')
    assert [line for line in lines if line.startswith("  File")] == lines[1:2]
    assert lines[-1] == "KeyError: 'a'"
    assert lines.count(lines[0]) == 1


def test_files_of_the_standard_library_are_named_as_they_are_imported(model_dir: Path) -> None:
    try:
        json.loads("{")
    except ValueError as error:
        text = describe_error(error, str(model_dir))

    files = [line.split('"')[1] for line in text.splitlines() if line.startswith("  File ")]
    assert files[1:] == ["json/__init__.py", "json/decoder.py", "json/decoder.py"]


def test_causes_and_groups_are_cut_as_well(model_dir: Path) -> None:
    write(
        model_dir / "raising.py",
        """
        def fail():
            try:
                raise KeyError("a")
            except KeyError as error:
                raise ExceptionGroup("both", [ValueError("b")]) from error
        """,
    )
    import raising  # type: ignore[import-not-found]

    try:
        raising.fail()
    except ExceptionGroup as error:
        text = describe_error(error, str(model_dir))

    assert str(model_dir) not in text
    assert text.count('File "raising.py"') == 2
    assert "ValueError: b" in text


def test_a_file_beside_the_models_keeps_its_path(model_dir: Path, tmp_path_factory: Any) -> None:
    elsewhere = write(tmp_path_factory.mktemp("elsewhere") / "other.py", "def fail():\n    raise ValueError\n")
    code = compile(elsewhere.read_text(), str(elsewhere), "exec")
    names: dict[str, Any] = {}
    exec(code, names)

    try:
        names["fail"]()
    except ValueError as error:
        text = describe_error(error, str(model_dir))

    assert f'File "{elsewhere}", line 2, in fail' in text
    assert str(elsewhere.parent) not in sys.path
