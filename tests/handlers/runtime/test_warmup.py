"""A sample is run before the worker is ready."""

from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.runtime.warmup import warm_up
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import EntryPoint


class Noting:
    """Writes down the batches that it is given; fails when told to."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def initialize(self, context: Context) -> None:
        pass

    def handle(self, data: list[Any], context: Context) -> list[Any]:
        self.batches.append([row["body"] for row in data])
        if data[0]["body"] == "fail":
            raise ValueError("no sample")
        return ["ok"] * len(data)


def run(model_dir: Path, warmup: object) -> Noting:
    handler = Noting()
    runtime = Runtime(EntryPoint(handler, handler.handle), context_of(model_dir))
    load = wire.Load("net", "1.0", str(model_dir), "h.py", {}, batch_size=4, threads=1)
    warm_up(runtime, load, {"warmup": warmup} if warmup is not None else {})
    return handler


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    (tmp_path / "sample.txt").write_text("cat")
    (tmp_path / "bad.txt").write_text("fail")
    return tmp_path


def test_nothing_is_run_if_nothing_is_named(model_dir: Path) -> None:
    assert run(model_dir, None).batches == []


def test_a_file_is_run_alone_and_in_a_full_batch(model_dir: Path) -> None:
    assert [len(batch) for batch in run(model_dir, "sample.txt").batches] == [1, 4]


def test_content_type_and_sizes_may_be_chosen(model_dir: Path) -> None:
    chosen = {"file": "sample.txt", "contentType": "text/plain", "batchSizes": [2]}

    assert run(model_dir, chosen).batches == [["cat", "cat"]]


@pytest.mark.parametrize(
    ("warmup", "sentence"),
    [
        pytest.param("none.txt", "names `none.txt`, and the archive does not hold it", id="a file that is not there"),
        pytest.param(7, "`warmup` is 7; expected the name of a file", id="no file name"),
        pytest.param({"file": "sample.txt", "batchSizes": [0]}, "expected a list of sizes", id="no size"),
        pytest.param(
            {"file": "bad.txt", "contentType": "text/plain"},
            "the warm-up with `bad.txt` failed: Prediction failed: ValueError: no sample",
            id="a handler that fails on it",
        ),
    ],
)
def test_what_cannot_be_run_is_a_sentence(model_dir: Path, warmup: object, sentence: str) -> None:
    with pytest.raises(HandlerError) as caught:
        run(model_dir, warmup)

    assert sentence in str(caught.value)
