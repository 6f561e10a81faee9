"""An inference request and its answer, whatever protocol carries them: JSON, its binary extension, or gRPC."""

from typing import Any, NamedTuple

from tsctl.daemon.core.arena import Payload

Parameter = bool | int | float | str
Parameters = dict[str, Parameter]


class Tensor(NamedTuple):
    """One named tensor.

    Attributes:
        data: the elements as in elements.py, in row-major order; perhaps in the arena.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: Payload
    parameters: Parameters


class WantedOutput(NamedTuple):
    """One output that a request asks for.

    Attributes:
        binary: its elements are to follow the answer's JSON as bytes.
    """

    name: str
    binary: bool
    parameters: Parameters


class InferRequest(NamedTuple):
    """An inference request.

    Attributes:
        id: empty for none.
        inputs: their readers have refused a name that is there twice.
        outputs: empty for all that the model has.
        binary: what `WantedOutput.binary` is for outputs that are not named.
    """

    id: str
    parameters: Parameters
    inputs: list[Tensor]
    outputs: list[WantedOutput]
    binary: bool


class InferAnswer(NamedTuple):
    model_name: str
    model_version: str
    id: str
    parameters: Parameters
    outputs: list[Tensor]


def describe_tensor(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor as JSON has it, without its elements."""
    described: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    return described | {"parameters": tensor.parameters} if tensor.parameters else described
