"""The OpenAPI description of the protocol's routes; of one model, with the tensors that the model declares."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tsctl.daemon.api.inference.openapi import about, prediction
from tsctl.daemon.api.openapi import STRING, Operation, listed, members, one_of, whole
from tsctl.daemon.model_settings.declarations import DeclaredTensor, show_declaration

# Name of the operation (`operationId`) → path, and the document that it answers.
_ABOUT = {
    "kserveV2Server": ("/v2", "The server's name, version and extensions."),
    "kserveV2Live": ("/v2/health/live", "The event loop is running."),
    "kserveV2Ready": ("/v2/health/ready", "Whether every default version has a ready worker."),
    "kserveV2Model": ("/v2/models/{model_name}", "The names and types of the model's tensors."),
    "kserveV2Version": ("/v2/models/{model_name}/versions/{model_version}", "As of a model, of one version."),
    "kserveV2ModelReady": ("/v2/models/{model_name}/ready", "Whether the default version has a ready worker."),
    "kserveV2VersionReady": (
        "/v2/models/{model_name}/versions/{model_version}/ready", "Whether the version has a ready worker."
    ),
    "kserveV2Config": ("/v2/models/{model_name}/config", "Triton's model configuration."),
    "kserveV2Statistics": ("/v2/models/{model_name}/stats", "Counts and sums of times, in nanoseconds."),
    "kserveV2AllStatistics": ("/v2/models/stats", "The same, of every version."),
}  # fmt: skip
_VALUES: dict[str, object] = {"BYTES": "text", "BOOL": False}  # in examples, in place of a number
_SHOWN = 1000  # elements of an example


def operations() -> dict[str, dict[str, Operation]]:
    """Return the description of every route that tells about the server or a model: path → method → operation."""
    return {path: {"get": about(name, path, text)} for name, (path, text) in _ABOUT.items()}


def operations_of(
    model: str, inputs: Sequence[DeclaredTensor], outputs: Sequence[DeclaredTensor]
) -> dict[str, dict[str, Operation]]:
    """Return the description of the route that runs one model; nothing if the model declares no inputs."""
    if not inputs:
        return {}
    path = f"/v2/models/{model}/infer"
    told = prediction("kserveV2Infer", path)
    told["requestBody"]["content"]["application/json"] = _tensors("inputs", inputs)
    if outputs:
        told["responses"]["200"]["content"]["application/json"] = _tensors("outputs", outputs)
    return {path: {"post": told}}


def _tensors(member: str, tensors: Sequence[DeclaredTensor]) -> dict[str, Any]:
    """Return a JSON document of the protocol: its schema, and an example."""
    chosen = [
        members(
            {"name": one_of(each.name), "datatype": one_of(each.datatype), "shape": _shape(each)},
            {"parameters": {"type": "object"}, "data": {"type": "array", "items": {}}},
        )
        for each in tensors
    ]
    return {
        "schema": members({member: listed({"oneOf": chosen})}, {"id": STRING, "parameters": {"type": "object"}}),
        "example": {member: [_example(each) for each in tensors]},
    }


def _shape(tensor: DeclaredTensor) -> dict[str, Any]:
    rank = len(tensor.shape)
    return listed(whole(0)) | {"minItems": rank, "maxItems": rank}


def _example(tensor: DeclaredTensor) -> dict[str, Any]:
    """Return a tensor with the smallest shape that the declaration allows; without data where these are many."""
    shape = [1 if size == -1 else size for size in tensor.shape]
    value = _VALUES.get(tensor.datatype, 0)
    count = prod(shape)
    return show_declaration(tensor) | {"shape": shape} | ({"data": [value] * count} if count <= _SHOWN else {})
