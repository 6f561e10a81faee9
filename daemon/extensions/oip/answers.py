"""Answers to inference requests over HTTP: JSON, or JSON and the bytes of some outputs after it."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from tsctl.daemon.core.arena import Lease
from tsctl.daemon.core.errors import PredictionFailed
from tsctl.daemon.core.job import Reply, error_reply
from tsctl.daemon.extensions.tensors.answers import HEAD_LENGTH
from tsctl.daemon.extensions.tensors.elements import FLOATS, Element, unpack
from tsctl.daemon.extensions.tensors.forms import InferAnswer, InferRequest, Tensor, describe_tensor
from tsctl.daemon.extensions.tensors.json_tensors import SIZE
from tsctl.daemon.extensions.tensors.prepared_request import PreparedRequest
from tsctl.handlers.tensor_heads import ElementHeads, InferHead


def as_asked(prepared: PreparedRequest, request: InferRequest, reply: Reply) -> Reply:
    """Return a reply as the client asked for it: outputs as JSON or binary.

    An error, and the answer of a handler that answers with something else, stay as they are.
    """
    head = prepared.head
    if reply.error or isinstance(head, InferHead):
        return reply
    if head is not None and head.document and _is_as_asked(head, reply):
        return reply
    binary = {each.name: each.binary for each in request.outputs}
    try:
        answer = prepared.read(reply)
    except ValueError:
        return reply
    try:
        wanted = {each.name: binary.get(each.name, request.binary) for each in answer.outputs}
        body, length = write_answer(answer, wanted.__getitem__)
    except ValueError as error:
        return error_reply(PredictionFailed(str(error)))
    kind = "application/json" if length is None else "application/octet-stream"
    more = [] if length is None else [(HEAD_LENGTH, str(length))]
    kept = [each for each in reply.headers if each[0].lower() not in ("content-type", HEAD_LENGTH.lower())]
    return Reply(reply.status, body, reply.phrase, [*kept, ("Content-Type", kind), *more])


def _is_as_asked(head: ElementHeads, reply: Reply) -> bool:
    """Return whether the answer of a model that declares nothing is all JSON, or all bytes, and is asked for so.

    The worker has written the bytes, if the answer is one of the protocol.
    """
    wanted = [each.binary for each in head.outputs] or [head.binary]
    if not any(wanted):
        return True
    return all(wanted) and any(name.lower() == HEAD_LENGTH.lower() for name, _ in reply.headers)


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
            outputs.append(describe_tensor(tensor) | {"data": values_of(tensor)})
            continue
        data = tensor.data.view if isinstance(tensor.data, Lease) else tensor.data
        outputs.append(describe_tensor(tensor._replace(parameters={**tensor.parameters, SIZE: len(data)})))
        follows.append(data)
    head = msgspec.json.encode(document | {"outputs": outputs})
    return b"".join((head, *follows)), len(head) if follows else None


def values_of(tensor: Tensor) -> list[Element]:
    """Return the elements as JSON can hold them; those of BYTES as texts.

    Raises:
        ValueError: an element is NaN or infinite, or is BYTES that are no UTF-8.
    """
    data = tensor.data
    values = unpack(tensor.datatype, data.view if isinstance(data, Lease) else data)
    if tensor.datatype == "BYTES":
        try:
            return [str(each, "utf-8") for each in values]  # type: ignore[arg-type]
        except UnicodeDecodeError:
            raise ValueError(
                f"{tensor.name} has bytes that are not UTF-8, which JSON cannot hold: use binary data."
            ) from None
    if tensor.datatype in FLOATS and not all(map(math.isfinite, values)):  # type: ignore[arg-type]
        raise ValueError(
            f"{tensor.name} has elements that are NaN or infinite, which JSON cannot hold: use binary data."
        )
    return values
