"""Several outputs of a model: an item for each row, under the names that the file or the answer gives them."""

import json
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.handlers.builtin.support.saved_models import JSON, ask, export, runtime_of
from tsctl.handlers import wire
from tsctl.handlers.builtin.support.model_outputs import items_of_outputs, logits_of, outputs_of
from tsctl.handlers.sdk.errors import InvalidResult
from tsctl.handlers.tensor_heads import InferHead, TensorHead, WantedTensor

ROWS, MARKS = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([7, 8])
Boxes = namedtuple("Boxes", ("boxes", "marks"))


@pytest.mark.parametrize(
    ("output", "names", "items"),
    [
        pytest.param(ROWS, (), [[1.0, 2.0], [3.0, 4.0]], id="one"),
        pytest.param(ROWS, ("x",), [[1.0, 2.0], [3.0, 4.0]], id="one with a name"),
        pytest.param((ROWS, MARKS), (), [[[1.0, 2.0], 7], [[3.0, 4.0], 8]], id="a tuple"),
        pytest.param([ROWS], (), [[[1.0, 2.0]], [[3.0, 4.0]]], id="a list of one"),
        pytest.param(
            [ROWS, MARKS], ("a", "b"), [{"a": [1.0, 2.0], "b": 7}, {"a": [3.0, 4.0], "b": 8}], id="the file's"
        ),
        pytest.param({"m": MARKS, "none": None}, (), [{"m": 7}, {"m": 8}], id="a dict"),
        pytest.param(Boxes(ROWS, MARKS), (), [{"boxes": [1.0, 2.0], "marks": 7}, {"boxes": [3.0, 4.0], "marks": 8}],
                     id="a named tuple"),
        pytest.param({"a": (MARKS, MARKS)}, (), [{"a": [7, 7]}, {"a": [8, 8]}], id="nested"),
    ],
)  # fmt: skip
def test_an_item_for_each_row(output: Any, names: tuple[str, ...], items: list[Any]) -> None:
    assert items_of_outputs(output, names) == items


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (torch.tensor(1.0), "a single value; expected a tensor with a row for each request"),
        ((ROWS, MARKS[:1]), "different numbers of rows: 2 of `1`, 1 of `2`"),
        ({"a": ROWS, "b": MARKS[:1]}, "different numbers of rows: 2 of `a`, 1 of `b`"),
        ("text", "The model returns str; expected tensors"),
        ((), "The model returns tuple; expected tensors"),
    ],
)
def test_what_has_no_rows_is_told(output: Any, reason: str) -> None:
    with pytest.raises(InvalidResult, match=reason):
        items_of_outputs(output)


@pytest.mark.parametrize(
    ("output", "member", "has"),
    [
        (ROWS[0], "", r"a tensor of float32 of shape \[2\]"),
        (ROWS[:, :, None, None], "", r"a tensor of float32 of shape \[2, 2, 1, 1\]"),
        (MARKS[None], "", r"a tensor of int64 of shape \[1, 2\]"),
        ({"logits": ROWS}, "", "dict"),
        ((ROWS,), "", "tuple"),
        (ROWS, "out", r"a tensor of float32 of shape \[2, 2\]"),
        ({"logits": ROWS}, "out", "dict"),
    ],
)
def test_a_model_that_returns_no_logits_is_told_what_its_handler_expects(output: Any, member: str, has: str) -> None:
    of = " in a dict, as `out`" if member else ""
    with pytest.raises(InvalidResult, match=rf"^The model returns {has}; .* floats of shape \(rows, classes\){of}$"):
        logits_of(output, "rows, classes", member)


class Found(NamedTuple):
    best: Tensor
    where: Tensor


class Largest(nn.Module):
    def forward(self, values: Tensor, scale: Tensor) -> Found:
        best, where = (values * scale).max(1)
        return Found(best, where)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("files")
    inputs = torch.ones(2, 3), torch.ones(2, 1)
    export(
        folder / "largest.onnx", Largest(), *inputs, names=["values", "scale"], outputs=["best", "where"], fixed=False
    )
    torch.jit.script(Largest()).save(str(folder / "largest.pt"))
    return folder


@pytest.mark.parametrize("name", ["largest.onnx", "largest.pt"])
def test_several_outputs_are_an_object_by_their_names(files: Path, name: str) -> None:
    runtime = runtime_of(files, name)

    answers = ask(runtime, {"values": [1, 5, 2], "scale": [2]}, {"values": [9, 5, 2], "scale": [1]})

    assert answers == [(200, {"best": 10.0, "where": 1}), (200, {"best": 9.0, "where": 0})]


def test_a_session_declares_its_outputs_as_of_one_row(files: Path) -> None:
    declared = runtime_of(files, "largest.onnx").declared

    assert declared is not None
    assert [(each.name, each.datatype, each.shape) for each in declared.outputs] == [
        ("best", "FP32", []), ("where", "INT64", []),
    ]  # fmt: skip
    assert runtime_of(files, "largest.pt").declared.outputs == []  # type: ignore[union-attr]  # TorchScript tells none
    assert outputs_of(nn.Linear(1, 1)) == []


@pytest.mark.parametrize("shape", [[3], [1, 3]], ids=["a row", "with the dimension of a batch"])
def test_tensors_are_answered_as_the_sessions_outputs(files: Path, shape: list[int]) -> None:
    heads = [TensorHead("scale", "FP32", [1]), TensorHead("values", "FP32", shape)]
    params: list[tuple[str, str, wire.Payload]] = [
        ("scale", "", np.array([2], np.float32).tobytes()),
        ("values", "", np.array([1, 5, 2], np.float32).tobytes()),
    ]
    head = InferHead("7", {}, heads, [WantedTensor("where", False)], False)

    (answer,) = runtime_of(files, "largest.onnx").run([wire.Row("r0", [], params, head)])

    assert answer.status == 200, bytes(answer.body)
    assert json.loads(answer.body)["outputs"] == [{"name": "where", "datatype": "INT64", "shape": [], "data": [1]}]
    assert ("Content-Type", JSON) in [tuple(each) for each in answer.headers]
