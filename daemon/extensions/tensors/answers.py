"""A model's answer to an inference request: JSON, or JSON and the bytes of some outputs after it."""

import msgspec

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Reply
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.tensors.forms import InferAnswer
from tsctl.daemon.extensions.tensors.json_tensors import RawParameters, WrittenTensor, read_parameters, tensor_steps

HEAD_LENGTH = "Inference-Header-Content-Length"  # bytes of JSON before the tensors' own bytes


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


def answer_of(reply: Reply) -> InferAnswer:
    """Return the answer that a reply is.

    Raises:
        ValueError: the reply is no answer of the protocol; the message says why.
    """
    length = next((value for name, value in reply.headers if name.lower() == HEAD_LENGTH.lower()), None)
    return parse_answer(reply.body, int(length) if length is not None and length.isdecimal() else None)
