"""Tensors of an inference request, as frames describe them; their elements are the parameters of the row."""

import msgspec


class TensorHead(msgspec.Struct, array_like=True):
    """A tensor of an inference request, without its elements; the words are those of the Open Inference Protocol."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, bool | int | float | str] = {}


class WantedTensor(msgspec.Struct, array_like=True):
    """An output that an inference request asks for; `binary`: as bytes, else in JSON."""

    name: str
    binary: bool


class InferHead(msgspec.Struct, array_like=True):
    """An inference request, without its tensors' elements.

    `outputs`: those that are asked for, empty for all. `binary`: whether outputs that are not named are sent as bytes.
    """

    id: str
    parameters: dict[str, bool | int | float | str]
    inputs: list[TensorHead]
    outputs: list[WantedTensor]
    binary: bool
