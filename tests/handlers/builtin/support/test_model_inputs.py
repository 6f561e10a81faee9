"""A model's file tells its inputs: requests name them, their values get its types, and what does not fit is told."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.handlers.builtin.support.saved_models import JSON, ask, export, runtime_of
from tsctl.handlers import wire
from tsctl.handlers.builtin.support.model_inputs import ModelTensor, inputs_of

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
IDS, MASK = ModelTensor("ids", "INT64", (4,)), ModelTensor("mask", "FP32", (4,))


class Masked(nn.Module):
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return ids * mask


class Doubled(nn.Module):
    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values * 2


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    ids, mask = torch.ones(2, 4, dtype=torch.int64), torch.ones(2, 4)
    export(folder / "two.onnx", Masked(), ids, mask, names=["ids", "mask"])
    export(folder / "fixed.onnx", Masked(), ids, mask, names=["ids", "mask"], fixed=True)
    export(folder / "one.onnx", Doubled(), torch.ones(1, 2), names=["values"])
    torch.jit.script(Masked()).save(str(folder / "two.pt"))
    torch.jit.script(Doubled()).save(str(folder / "one.pt"))
    return folder


@pytest.mark.parametrize("name", ["two.onnx", "fixed.onnx", "two.pt"])
def test_several_inputs_are_members_of_a_json_object(files: Path, name: str) -> None:
    runtime = runtime_of(files, name)

    answers = ask(runtime, *({"ids": [1, 2, 3, number], "mask": [1, 0, 1, 1]} for number in range(3)))

    assert answers == [(200, [1.0, 0.0, 3.0, float(number)]) for number in range(3)]
    assert runtime.declared is not None
    assert [each.name for each in runtime.declared.inputs] == ["ids", "mask"]


def test_a_session_declares_types_and_shapes_of_a_row(files: Path) -> None:
    declared = runtime_of(files, "two.onnx").declared

    assert declared is not None and declared.built_in
    assert [(each.name, each.kind, each.datatype, each.shape) for each in declared.inputs] == [
        ("ids", "array", "INT64", [4]),
        ("mask", "array", "FP32", [4]),
    ]


@pytest.mark.parametrize("document", [[1, 2], [[1, 2]], {"values": [1, 2]}, {"data": [1, 2]}, {"values": [[1, 2]]}])
def test_the_one_input_of_a_session_gets_its_type_under_each_of_its_names(files: Path, document: Any) -> None:
    assert ask(runtime_of(files, "one.onnx"), document) == [(200, [2.0, 4.0])]


@pytest.mark.parametrize("name", ["two.onnx", "two.pt"])
def test_inputs_are_parts_of_a_form(files: Path, name: str) -> None:
    params: list[tuple[str, str, wire.Payload]] = [("ids", "", b"[1, 2, 3, 4]"), ("mask", JSON, b"[1, 0, 1, 1]")]

    (answer,) = runtime_of(files, name).run([wire.Row("r0", [], params)])

    assert (answer.status, json.loads(answer.body)) == (200, [1.0, 0.0, 3.0, 4.0])


def test_one_input_of_torchscript_is_as_of_any_model(files: Path) -> None:
    runtime = runtime_of(files, "one.pt")

    assert ask(runtime, [1, 2, 3]) == [(200, [2, 4, 6])]
    assert runtime.declared is not None and [each.name for each in runtime.declared.inputs] == ["data"]


@pytest.mark.parametrize(
    ("name", "document", "reason"),
    [
        ("two.onnx", {"ids": [1, 2, 3, 4]}, "the model takes `ids` (INT64 of shape [4]), `mask` (FP32 of shape [4])"),
        ("two.onnx", {"ids": [1.5, 2, 3, 4], "mask": [1] * 4}, "`ids`: expected INT64, got float64 that does not fit"),
        ("two.onnx", {"ids": [1, 2], "mask": [1] * 4}, "`ids`: expected shape [4], got [2]"),
        ("two.onnx", {"ids": ["a"], "mask": [1] * 4}, "`ids`: not an array of numbers"),
        ("two.pt", [1, 2], "The request has `body`, and the model takes `ids`, `mask`: send a JSON object, or a form"),
        ("one.onnx", "text", "`values`: expected a list of numbers in JSON"),
    ],
)
def test_what_does_not_fit_is_told_and_others_of_the_batch_go_on(
    files: Path, name: str, document: Any, reason: str
) -> None:
    fits = [1, 2] if name == "one.onnx" else {"ids": [1] * 4, "mask": [1] * 4}

    (status, text), (other, _) = ask(runtime_of(files, name), document, fits)

    assert (status, other) == (400, 200)
    assert reason in text


def test_other_models_tell_no_inputs() -> None:
    assert inputs_of(nn.Linear(1, 1)) == [] == inputs_of(None)
