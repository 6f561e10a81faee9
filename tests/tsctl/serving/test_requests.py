"""Targets are checked before a daemon is started."""

from pathlib import Path

import pytest

from tests.kit.archives import write_files
from tests.tsctl.conftest import Invoke
from tsctl.errors import CliError
from tsctl.serving.requests import parameters_of, read_targets


def test_several_targets_have_names_of_their_own(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": b"def f(): ...\ndef g(): ...\n", "b.onnx": b""})

    targets = read_targets(["a.py:f", "a.py:g", "b.onnx"], tmp_path)

    assert [target.model_name for target in targets] == ["f", "g", "b"]


def test_two_targets_of_one_name_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"m.py": b"", "m.onnx": b""})

    with pytest.raises(CliError, match=r"both `m.py` and `m.onnx` would be served as `m`"):
        read_targets(["m.py", "m.onnx"], tmp_path)


def test_a_name_is_for_one_target(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": b"", "b.py": b""})

    with pytest.raises(CliError, match="`--name` and `--handler` are for one TARGET"):
        read_targets(["a.py", "b.py"], tmp_path, name="x")


def test_a_syntax_error_is_told_before_anything_is_started(tmp_path: Path) -> None:
    write_files(tmp_path, {"h.py": b"x = (\n"})

    with pytest.raises(CliError) as caught:
        read_targets(["h.py"], tmp_path)

    assert caught.value.message == "h.py, line 1: SyntaxError: '(' was never closed"
    assert caught.value.details.strip() == "x = ("


def test_a_registration_asks_for_a_worker_and_for_batches_where_nobody_says_a_size(tmp_path: Path) -> None:
    write_files(tmp_path, {"h.py": b""})

    (target,) = read_targets(["h.py"], tmp_path)

    assert parameters_of(target) == {
        "url": str(tmp_path / "h.py"), "model_name": "h", "handler": None,
        "fallback_workers": 1, "fallback_batch_size": 8,
    }  # fmt: skip


def test_an_archive_keeps_its_own_name_and_batch_size(tmp_path: Path) -> None:
    write_files(tmp_path, {"m.mar": b"PK"})

    (target,) = read_targets(["m.mar"], tmp_path)

    assert parameters_of(target) == {
        "url": str(tmp_path / "m.mar"), "model_name": None, "handler": None, "fallback_workers": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("name", "handler"), [("x", "image_classifier"), ("x", None)])
def test_a_name_and_a_handler_win(name: str, handler: str | None, tmp_path: Path) -> None:
    write_files(tmp_path, {"m.onnx": b""})

    (target,) = read_targets(["m.onnx"], tmp_path, name=name, handler=handler)

    assert parameters_of(target)["model_name"] == "x"
    assert parameters_of(target)["handler"] == (handler or "base_handler")


def test_serve_without_a_worker_is_refused_before_anything_starts(invoke: Invoke) -> None:
    result = invoke("serve", "nothing.py", "--workers", "0")

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: with `--workers 0` nothing would answer",
        "hint: leave it out, or load with the first request: `--loading on_demand`",
    ]
