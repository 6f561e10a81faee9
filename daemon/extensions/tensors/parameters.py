"""Parameters of requests in tensors that the daemon itself reads: headers, and those that are not served.

Others are the handler's. A parameter of the protocol, or of one of Triton's extensions, that is not served is refused
by its name: without it the answer would be another one than the client means.
"""

from collections.abc import Mapping, Sequence

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.tensors.forms import Parameters
from tsctl.daemon.models.request_watcher import ParameterHeader

# Of inputs and outputs: whatever their value, the tensor is not the one that is meant.
OF_INPUTS = {"shared_memory_region": "shared memory: send the tensor in the request"}
OF_OUTPUTS = {
    "shared_memory_region": "shared memory: read the tensor from the answer",
    "classification": "classification: choose the classes from the output",
}
# Of the request (Triton's schedule policy): numbers, of which 0 is none. Other values are a handler's own parameter.
_OF_REQUESTS = {
    "priority": "send the header `x-request-priority` with `low` for a request that may wait",
    "timeout": "send the header `x-request-deadline-ms`, in milliseconds",
}
_OF_STREAMS = ("triton_enable_empty_final_response",)
_SHOWN = 100  # characters of a value in a message


def check_served(what: str, parameters: Mapping[str, object], refused: Mapping[str, str]) -> None:
    """Check the parameters of an input or an output.

    Args:
        what: the tensor, to begin a sentence: "Input INPUT0".
        refused: `OF_INPUTS` or `OF_OUTPUTS`.

    Raises:
        BadRequest: one of them is not served.
    """
    for name, sentence in refused.items():
        if name in parameters:
            raise BadRequest(f"{what} has the parameter `{name}`; tsctl does not serve {sentence}.")


def check_parameters(parameters: Parameters, known: Mapping[str, ParameterHeader], inputs: Sequence[str]) -> None:
    """Check that no parameter of a request for a typed or built-in handler is lost: such a handler sees inputs alone.

    Args:
        inputs: the names of the handler's.

    Raises:
        BadRequest: a parameter has no effect.
    """
    for name, value in parameters.items():
        if name in known or name in _OF_STREAMS or (name in _OF_REQUESTS and type(value) is int):
            continue
        way = "send it as an input" if name in inputs else f"its inputs are {', '.join(inputs)}"
        raise BadRequest(
            f"The parameter `{name[:_SHOWN]}` of the request has no effect: the handler takes no parameters, {way}."
        )


def headers_of(parameters: Parameters, known: Mapping[str, ParameterHeader]) -> tuple[tuple[str, str], ...]:
    """Return the headers that the parameters of a request stand for.

    Raises:
        BadRequest: a parameter has a value that it cannot have, or is not served.
    """
    if not parameters:
        return ()
    for name, sentence in _OF_REQUESTS.items():
        value = parameters.get(name)
        if type(value) is int and value:
            raise BadRequest(f"The parameter `{name}` of the request is {value}; tsctl does not serve it: {sentence}.")
    found: list[tuple[str, str]] = []
    for name, header in known.items():
        if name in parameters and (text := _text_of(name, parameters[name], header.flag)):
            found.append((header.name, text))
    return tuple(found)


def _text_of(name: str, value: bool | int | float | str, flag: bool) -> str:
    """Return the value of a header; empty for none."""
    if flag:
        if type(value) is bool:
            return "true" if value else "false"
        expected = "true or false"
    else:
        if type(value) is int:
            return str(value) if value else ""
        if isinstance(value, str):
            return value
        expected = "a text or a whole number"
    raise BadRequest(f"The parameter `{name}` of the request is {str(value)[:_SHOWN]}; expected {expected}.")
