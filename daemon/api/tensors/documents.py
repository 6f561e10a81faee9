"""Tensors as JSON: of a request for a model that declares none, and of an answer for a client that asks for JSON."""

import math
from typing import Any

import msgspec

from tsctl.daemon.api.tensors.elements import Element, unpack
from tsctl.daemon.api.tensors.forms import InferRequest, Tensor
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
