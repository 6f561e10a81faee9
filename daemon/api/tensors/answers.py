"""Answers to inference requests, over HTTP: JSON, or JSON and the bytes of some outputs after it."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from tsctl.daemon.api.tensors.elements import Element, unpack
from tsctl.daemon.api.tensors.forms import InferAnswer, InferRequest, Tensor
from tsctl.daemon.api.tensors.requests import SIZE, RawParameters, WrittenTensor, read_parameters, tensor_steps
from tsctl.daemon.api.tensors.steps import finish
from tsctl.daemon.core.arena import Lease
from tsctl.daemon.core.errors import BadRequest

_REMEDY = "which JSON cannot hold: use binary data."
_FLOATS = ("FP16", "BF16", "FP32", "FP64")


def values_of(tensor: Tensor) -> list[Element]:
    """Return the elements as JSON can hold them; those of BYTES as texts.

    Raises:
        BadRequest: an element is NaN or infinite, or is BYTES that are no UTF-8.
    """
    data = tensor.data
    values = unpack(tensor.datatype, data.view if isinstance(data, Lease) else data)
    if tensor.datatype == "BYTES":
        try:
            return [str(each, "utf-8") for each in values]  # type: ignore[arg-type]
        except UnicodeDecodeError:
            raise BadRequest(
                f"{tensor.name} has bytes that are not UTF-8, which JSON cannot hold: use binary data."
            ) from None
    if tensor.datatype in _FLOATS and not all(map(math.isfinite, values)):  # type: ignore[arg-type]
        raise BadRequest(
            f"{tensor.name} has elements that are NaN or infinite, which JSON cannot hold: use binary data."
        )
    return values


def document_of(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor in JSON, its elements flat.

    Raises:
        BadRequest: as `values_of`.
    """
    return _described(tensor) | {"data": values_of(tensor)}


def described_request(request: InferRequest) -> bytes:
    """Return a request as JSON without its tensors' elements, which the worker writes into it."""
    document: dict[str, Any] = {"id": request.id} if request.id else {}
    if request.parameters:
        document["parameters"] = request.parameters
    document["inputs"] = [_described(each) for each in request.inputs]
    if request.outputs:
        document["outputs"] = [
            {"name": each.name} | ({"parameters": each.parameters} if each.parameters else {})
            for each in request.outputs
        ]
    return msgspec.json.encode(document)


def _described(tensor: Tensor) -> dict[str, Any]:
    described: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    return described | {"parameters": tensor.parameters} if tensor.parameters else described


class _WrittenAnswer(msgspec.Struct):
    outputs: list[WrittenTensor]
    model_name: str | None = None
    model_version: str | int | float | None = None
    id: str | None = None
    parameters: RawParameters = None


_decode = msgspec.json.Decoder(_WrittenAnswer).decode


def parse_answer(body: bytes, head_length: int | None = None) -> InferAnswer:
    """Parse the answer of a model.

    Args:
        head_length: bytes of its JSON; None if it is JSON as a whole.

    Raises:
        ValueError: it is no answer of the protocol; the message says why.
    """
    length = len(body) if head_length is None else head_length
    if not 0 <= length <= len(body):
        raise ValueError(f"The model's answer is said to have {length} bytes of JSON; it has {len(body)} bytes.")
    try:
        written = _decode(memoryview(body)[:length])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"The model's answer does not follow the Open Inference Protocol: {error}") from None
    outputs, at = [], length
    try:
        for each in written.outputs:
            tensor, at = finish(tensor_steps(f"output {each.name}", each, body, at))
            outputs.append(tensor)
        parameters = read_parameters("the answer", written.parameters)
    except BadRequest as error:
        raise ValueError(f"The model's answer does not follow the Open Inference Protocol: {error}") from None
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes follow the last output of the model's answer.")
    version = "" if written.model_version is None else str(written.model_version)
    return InferAnswer(written.model_name or "", version, written.id or "", parameters, outputs)


def write_answer(answer: InferAnswer, binary: Callable[[str], bool]) -> tuple[bytes, int | None]:
    """Return an answer, and the length of its JSON; None if it is JSON as a whole.

    Args:
        binary: returns whether the bytes of the output with this name are to follow the JSON.

    Raises:
        ValueError: JSON cannot hold an output; the message names it.
    """
    document: dict[str, Any] = {"model_name": answer.model_name, "model_version": answer.model_version}
    if answer.id:
        document["id"] = answer.id
    if answer.parameters:
        document["parameters"] = answer.parameters
    outputs: list[dict[str, Any]] = []
    follows: list[bytes | memoryview] = []
    for tensor in answer.outputs:
        if not binary(tensor.name):
            try:
                outputs.append(document_of(tensor))
            except BadRequest as error:
                raise ValueError(str(error)) from None
            continue
        data = tensor.data.view if isinstance(tensor.data, Lease) else tensor.data
        parameters = {**tensor.parameters, SIZE: len(data)}
        shape = list(tensor.shape)
        outputs.append({"name": tensor.name, "datatype": tensor.datatype, "shape": shape, "parameters": parameters})
        follows.append(data)
    head = msgspec.json.encode(document | {"outputs": outputs})
    asked_for_bytes = any("data" not in each for each in outputs)
    return b"".join((head, *follows)), len(head) if asked_for_bytes else None
