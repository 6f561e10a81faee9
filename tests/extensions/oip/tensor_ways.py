"""The ways in which one tensor comes over HTTP: in JSON, and as bytes after it."""

import json
from collections.abc import Sequence
from typing import Any

from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.oip.requests import parse_steps
from tsctl.daemon.extensions.tensors.forms import InferRequest


def ways_of(tensor: dict[str, Any], data: bytes, values: Sequence[Any]) -> dict[str, InferRequest]:
    """Return the request of one tensor, as it is read; arguments as of every such function."""
    head = json.dumps({"inputs": [tensor | {"parameters": {"binary_data_size": len(data)}}]}).encode()
    return {
        "JSON": finish(parse_steps(json.dumps({"inputs": [tensor | {"data": list(values)}]}).encode())),
        "binary": finish(parse_steps(head + data, len(head))),
    }
