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


class InferHead(msgspec.Struct, array_like=True, tag=1):
    """An inference request to a handler that gets arrays and returns outputs, without its tensors' elements.

    `outputs`: those that are asked for, empty for all. `binary`: whether outputs that are not named are sent as bytes.
    """

    id: str
    parameters: dict[str, bool | int | float | str]
    inputs: list[TensorHead]
    outputs: list[WantedTensor]
    binary: bool


class ElementHeads(msgspec.Struct, array_like=True, tag=2):
    """The tensors among the parameters of a request to a handler that is not asked in named arrays.

    The elements travel as bytes, and the worker makes of them what the handler takes: an array for an argument with
    that type hint, else lists. As lists or JSON they would hold the daemon's event loop (0.1 s for an image in FP32).

    `inputs`: one for each parameter; None for one that is no tensor. `document`: the first parameter is the request as
    JSON, without the elements of its inputs; the others are these, in the inputs' order. `outputs` and `binary`: as in
    InferHead, for a handler that answers with the protocol's JSON.
    """

    inputs: list[TensorHead | None]
    document: bool = False
    outputs: list[WantedTensor] = []
    binary: bool = False


Head = InferHead | ElementHeads
