"""Answers to inference requests, over HTTP: JSON, or JSON and the bytes of some outputs after it."""

from collections.abc import Callable
from typing import Any

import msgspec

from tsctl.daemon.api.tensors.documents import document_of
from tsctl.daemon.api.tensors.forms import InferAnswer
from tsctl.daemon.api.tensors.requests import SIZE, RawParameters, WrittenTensor, read_parameters, tensor_steps
from tsctl.daemon.api.tensors.steps import finish
from tsctl.daemon.core.arena import Lease
from tsctl.daemon.core.errors import BadRequest


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
