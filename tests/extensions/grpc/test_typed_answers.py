"""Outputs as typed contents of gRPC: elements are written in slices, between which others are served."""

from typing import Any

import pytest

from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.extensions.grpc.tensor_contents import write_steps
from tsctl.daemon.extensions.tensors.elements import pack
from tsctl.daemon.extensions.tensors.forms import InferAnswer, Tensor

COUNT = 20_000
VALUES: dict[str, tuple[str, list[Any]]] = {
    "BOOL": ("bool_contents", [True, False]), "UINT8": ("uint_contents", [0, 255]),
    "INT16": ("int_contents", [-1, 32767]), "INT64": ("int64_contents", [-(2**63), 5]),
    "UINT64": ("uint64_contents", [2**64 - 1, 0]), "FP32": ("fp32_contents", [1.5, -0.25]),
    "FP64": ("fp64_contents", [0.1, -1e300]), "BYTES": ("bytes_contents", [b"", b"\x00\xff"]),
}  # fmt: skip


def answer_of(datatype: str, values: list[Any]) -> InferAnswer:
    return InferAnswer("m", "1", "", {}, [Tensor("o", datatype, (len(values),), pack(datatype, values), {})])


@pytest.mark.parametrize("count", [0, 2, COUNT])
@pytest.mark.parametrize("datatype", VALUES)
def test_every_element_is_there(datatype: str, count: int) -> None:
    field, values = VALUES[datatype]
    message = message_class("inference.ModelInferResponse")()

    finish(write_steps(answer_of(datatype, values * (count // 2)), message, raw=False))

    (output,) = message.outputs
    assert list(getattr(output.contents, field)) == values * (count // 2)
    assert not message.raw_output_contents


@pytest.mark.parametrize("datatype", ["UINT8", "BYTES", "INT64"])
def test_others_are_served_between_slices(datatype: str) -> None:
    field, values = VALUES[datatype]
    message = message_class("inference.ModelInferResponse")()
    steps = write_steps(answer_of(datatype, values * (COUNT // 2)), message, raw=False)
    seen = [0, *(len(getattr(message.outputs[0].contents, field)) for _ in steps)]

    assert max(after - before for before, after in zip(seen, [*seen[1:], COUNT], strict=True)) <= 4096


def test_a_small_answer_is_written_at_once() -> None:
    message = message_class("inference.ModelInferResponse")()

    assert list(write_steps(answer_of("UINT8", [1, 2]), message, raw=False)) == []


@pytest.mark.parametrize("value", [True, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 0.5, "a"])
def test_a_parameter_of_an_answer_is_told_as_it_is(value: bool | int | float | str) -> None:
    message = message_class("inference.ModelInferResponse")()

    finish(write_steps(InferAnswer("m", "1", "", {"k": value}, []), message, raw=False))

    told = message.parameters["k"]
    assert getattr(told, told.WhichOneof("parameter_choice")) == value
