"""An inference request with binary tensors over HTTP: a JSON head, then the elements."""

import json

from tsctl.tensors.requests import RequestInTensors

LENGTH_HEADER = "Inference-Header-Content-Length"


def write_binary_body(request: RequestInTensors) -> tuple[bytes, list[list[str]]]:
    """Return the body and the headers of a request that asks for binary outputs."""
    inputs = [
        {
            "name": each.name,
            "datatype": each.datatype,
            "shape": list(each.shape),
            "parameters": each.parameters | {"binary_data_size": len(each.data)},
        }
        for each in request.inputs
    ]
    document = {"inputs": inputs, "parameters": {"binary_data_output": True} | request.parameters}
    if request.id:
        document["id"] = request.id
    if request.outputs:
        document["outputs"] = [{"name": name, "parameters": parameters} for name, parameters in request.outputs]
    head = json.dumps(document).encode()
    headers = [["Content-Type", "application/octet-stream"], [LENGTH_HEADER, str(len(head))]]
    return b"".join((head, *(each.data for each in request.inputs))), headers
