"""Targets are checked before a daemon is started."""

from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import write_files
from tests.tsctl.conftest import Invoke
from tsctl.errors import CliError
from tsctl.serving.requests import parameters_of, read_targets, registered_target


def test_several_targets_have_names_of_their_own(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": b"def f(): ...\ndef g(): ...\n", "b.onnx": b"x"})

    targets = read_targets(["a.py:f", "a.py:g", "b.onnx"], tmp_path)

    assert [target.model_name for target in targets] == ["f", "g", "b"]


@pytest.mark.parametrize(
    ("targets", "name", "why"),
    [
        (["m.py", "m.onnx"], None, "both `m.py` and `m.onnx` would be served as `m`"),
        (["a.py", "m.py"], "x", "`--name` and `--handler` are for one TARGET"),
        (["broken.py"], None, r"^broken.py, line 1: SyntaxError: '\(' was never closed$"),
    ],
)
def test_targets_are_refused_before_anything_is_started(
    tmp_path: Path, targets: list[str], name: str | None, why: str
) -> None:
    write_files(tmp_path, {"a.py": b"", "m.py": b"", "m.onnx": b"x", "broken.py": b"x = (\n"})

    with pytest.raises(CliError, match=why) as caught:
        read_targets(targets, tmp_path, name=name)
    assert caught.value.details.strip() == ("x = (" if "broken.py" in targets else "")


@pytest.mark.parametrize(
    ("file", "given", "expected"),
    [
        pytest.param("h.py", {}, {"model_name": "h", "handler": None, "fallback_batch_size": 8}, id="batches"),
        pytest.param("m.mar", {}, {"model_name": None, "handler": None}, id="an archive has its own name and size"),
        pytest.param(
            "m.onnx", {"name": "x", "handler": "image_classifier"},
            {"model_name": "x", "handler": "image_classifier", "fallback_batch_size": 8}, id="a name and a handler"),
        ("m.onnx", {"name": "x"}, {"model_name": "x", "handler": "base_handler", "fallback_batch_size": 8}),
    ],
)  # fmt: skip
def test_a_registration_asks_for_a_worker_and_for_batches_where_nobody_says_a_size(
    tmp_path: Path, file: str, given: dict[str, str], expected: dict[str, Any]
) -> None:
    write_files(tmp_path, {file: b"PK" if file == "m.mar" else b"x"})

    (target,) = read_targets([file], tmp_path, **given)

    assert parameters_of(target) == {"url": str(tmp_path / file), "fallback_workers": 1} | expected


def test_serve_without_a_worker_is_refused_before_anything_starts(invoke: Invoke) -> None:
    result = invoke("serve", "nothing.py", "--workers", "0")

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: with `--workers 0` nothing would answer",
        "hint: leave it out, or load with the first request: `--loading on_demand`",
    ]


def test_a_name_too_long_for_a_file_may_be_in_the_store_of_the_daemon(tmp_path: Path) -> None:
    assert registered_target("m" * 5000, tmp_path).url == "m" * 5000
