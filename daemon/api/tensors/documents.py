"""Tensors as JSON: of a request for a model that declares none, and of an answer for a client that asks for JSON."""

import math
from typing import Any

import msgspec

from daemon.api.tensors.elements import Element, unpack
from daemon.api.tensors.forms import InferRequest, Tensor
from daemon.core.arena import Lease
from daemon.core.errors import BadRequest

OF_ANSWER = "use binary data"
OF_REQUEST = "declare the model's `inputs` in its model-config.yaml, and its handler gets tensors"
_FLOATS = ("FP16", "BF16", "FP32", "FP64")
_MOST_EMPTY = 100_000  # lists without elements


def values_of(tensor: Tensor, remedy: str = OF_ANSWER) -> list[Element]:
    """Return the elements as JSON can hold them; those of BYTES as texts.

    Args:
        remedy: how to do without JSON, for a sentence.

    Raises:
        BadRequest: an element is NaN or infinite, or is BYTES that are no UTF-8.
    """
    data = tensor.data
    values = unpack(tensor.datatype, data.view if isinstance(data, Lease) else data)
    if tensor.datatype == "BYTES":
        try:
            return [str(each, "utf-8") for each in values]  # type: ignore[arg-type]
        except UnicodeDecodeError:
            raise BadRequest(f"{tensor.name} has bytes that are not UTF-8, which JSON cannot hold: {remedy}.") from None
    if tensor.datatype in _FLOATS and not all(map(math.isfinite, values)):  # type: ignore[arg-type]
        raise BadRequest(f"{tensor.name} has elements that are NaN or infinite, which JSON cannot hold: {remedy}.")
    return values


def nested(tensor: Tensor) -> Any:
    """Return the elements of an input as nested lists of its shape; a single element for the shape [].

    Raises:
        BadRequest: as `values_of`; or there are many empty lists, which no bytes of the request stand for.
    """
    values: list[Any] = values_of(tensor, OF_REQUEST)
    if not tensor.shape:
        return values[0]
    if not values and math.prod(tensor.shape[: tensor.shape.index(0)]) > _MOST_EMPTY:
        raise BadRequest(f"{tensor.name} of shape {list(tensor.shape)} is empty; at most {_MOST_EMPTY} lists are made.")
    for depth in range(len(tensor.shape) - 1, 0, -1):
        size = tensor.shape[depth]
        values = [values[at * size : (at + 1) * size] for at in range(math.prod(tensor.shape[:depth]))]
    return values


def document_of(tensor: Tensor, remedy: str = OF_ANSWER) -> dict[str, Any]:
    """Return a tensor in JSON, its elements flat.

    Args:
        remedy: as of `values_of`.

    Raises:
        BadRequest: as `values_of`.
    """
    document: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    if tensor.parameters:
        document["parameters"] = tensor.parameters
    return document | {"data": values_of(tensor, remedy)}


def request_document(request: InferRequest) -> bytes:
    """Return a request as JSON, its tensors' elements flat.

    Raises:
        BadRequest: as `values_of`.
    """
    document: dict[str, Any] = {"id": request.id} if request.id else {}
    if request.parameters:
        document["parameters"] = request.parameters
    document["inputs"] = [document_of(each, OF_REQUEST) for each in request.inputs]
    if request.outputs:
        document["outputs"] = [
            {"name": each.name} | ({"parameters": each.parameters} if each.parameters else {})
            for each in request.outputs
        ]
    return msgspec.json.encode(document)
