"""Inference requests of the Open Inference Protocol over HTTP: JSON, or JSON and the tensors' bytes after it.

With the binary extension (Triton's, "binary tensor data extension") the header `Inference-Header-Content-Length` is the
length of the JSON; an input with the parameter `binary_data_size` has as many bytes after it, in the inputs' order.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.json_text.walk import Found, JsonText
from tsctl.daemon.extensions.tensors.forms import InferRequest, WantedOutput
from tsctl.daemon.extensions.tensors.json_tensors import (
    MOST_PARAMETERS,
    SHOWN,
    SIZE,
    Name,
    RawParameters,
    WrittenTensor,
    read_parameters,
    shown,
    tensor_steps,
)
from tsctl.daemon.extensions.tensors.parameters import OF_INPUTS, OF_OUTPUTS, check_served
from tsctl.daemon.model_settings.declarations import MOST_TENSORS

BINARY, ALL_BINARY = "binary_data", "binary_data_output"  # parameters of the extension
# A large request is counted before it is built: 128 KB of gzip, of empty outputs, took 33 s and 1.4 GiB.
READ_AT_ONCE = 16 * 1024  # bytes of JSON, or of elements of BYTES; at most 2.5 ms, of nothing but empty texts
MOST_MEMBERS = 64  # of a request, or a tensor; the protocol has five
MOST_BESIDE = 256 * 1024  # bytes of a member of a large request, but data: names, shapes, parameters
_DECODED_WHOLE = 1024  # bytes of a value that is decoded without another look
_TENSORS_AT_ONCE = 64

T = TypeVar("T")


class _WrittenInput(WrittenTensor, forbid_unknown_fields=True):
    """One tensor of a request: a member that is not read might be meant to change the answer."""


class _WrittenOutput(msgspec.Struct, forbid_unknown_fields=True):
    name: Name
    parameters: RawParameters = None


class _WrittenRequest(msgspec.Struct, forbid_unknown_fields=True):
    inputs: list[_WrittenInput]
    id: str | None = None
    parameters: RawParameters = None
    outputs: list[_WrittenOutput] | None = None
    model_name: str | None = None  # KServe's SDK sends it beside the path, which counts
    model_version: str | None = None


_decode = msgspec.json.Decoder(_WrittenRequest).decode
_decode_tensor = msgspec.json.Decoder(_WrittenInput).decode
_decode_output = msgspec.json.Decoder(_WrittenOutput).decode


def parse_steps(body: Payload, head_length: int | None = None) -> Steps[InferRequest]:
    """Parse a request in steps; the bytes of its tensors stay in the arena, if that is where they are.

    Args:
        head_length: bytes of its JSON; None if it is JSON as a whole.

    Raises:
        BadRequest: the request is malformed, an input is there twice, or a tensor's elements are not what its
            datatype and shape say.
    """
    if head_length is not None and not 0 <= head_length <= len(body):
        raise BadRequest(f"The request's JSON is said to have {head_length} bytes; the body has {len(body)}.")
    view = body.view if isinstance(body, Lease) else memoryview(body)
    view = view if head_length is None else view[:head_length]
    written = _decoded(_decode, view) if len(view) <= READ_AT_ONCE else (yield from _walked(view))
    for kind, count in (("inputs", len(written.inputs)), ("outputs", len(written.outputs or ()))):
        if count > MOST_TENSORS:
            raise BadRequest(f"The request has {count} {kind}; at most {MOST_TENSORS} are read.")
    binary = _truth("the request", written.parameters, ALL_BINARY)
    inputs, at = [], len(body) if head_length is None else head_length
    seen: set[str] = set()
    for each in written.inputs:
        if each.name in seen:
            raise BadRequest(f"Input {each.name} is given twice; send each input once.")
        seen.add(each.name)
        if each.parameters:
            check_served(f"Input {each.name}", each.parameters, OF_INPUTS)
        tensor, at = yield from tensor_steps(f"input {each.name}", each, body, at)
        inputs.append(tensor)
        if not len(inputs) % _TENSORS_AT_ONCE:
            yield
    if at != len(body):
        raise BadRequest(
            f"{len(body) - at} bytes follow the last input's; `{SIZE}` of the inputs says how many there are."
        )
    outputs = []
    for wanted in written.outputs or ():
        outputs.append(_wanted(wanted, binary))
        if not len(outputs) % _TENSORS_AT_ONCE:
            yield
    parameters = read_parameters("the request", written.parameters, ALL_BINARY)
    return InferRequest(written.id or "", parameters, inputs, outputs, binary)


def _walked(view: memoryview) -> Steps[_WrittenRequest]:
    """Return a large request: its tensors are counted before any is built, and each is decoded by itself."""
    text = JsonText(view)
    inputs: list[_WrittenInput] | None = None
    outputs: list[_WrittenOutput] | None = None
    beside: list[bytes] = []
    for member in (yield from text.document(MOST_MEMBERS, "the request")):
        if member.name == "inputs":
            inputs = []
            for each in (yield from text.elements(member, MOST_TENSORS, "inputs")):
                inputs.append((yield from _walked_tensor(text, each)))
        elif member.name == "outputs" and text.part(member._replace(end=member.start + 1)) == b"[":
            outputs = []
            for each in (yield from text.elements(member, MOST_TENSORS, "outputs")):
                yield from _check_size(text, each, "an output")
                outputs.append(_decoded(_decode_output, text.part(each)))
                if not len(outputs) % _TENSORS_AT_ONCE:
                    yield
        elif member.name in _WrittenRequest.__struct_fields__:
            yield from _check_size(text, member, f"the member `{member.name}`")
            beside.append(b'"%b":%b' % (member.name.encode(), text.part(member)))
        else:
            raise _unknown(member.name)
    if inputs is None:
        raise BadRequest("The body is no inference request in JSON: it has no `inputs`.")
    written = _decoded(_decode, b'{"inputs":[],%b}' % b",".join(beside or (b'"id":null',)))
    written.inputs, written.outputs = inputs, written.outputs if outputs is None else outputs
    return written


def _walked_tensor(text: JsonText, of: Found) -> Steps[_WrittenInput]:
    """Return one input of a large request; its data stay as they are written."""
    if of.size <= _DECODED_WHOLE:
        return _decoded(_decode_tensor, text.part(of))
    data: Found | None = None
    beside: list[bytes] = []
    for member in (yield from text.members(of, MOST_MEMBERS, "an input")):
        if member.name == "data":
            data = member
        elif member.name in WrittenTensor.__struct_fields__:
            yield from _check_size(text, member, f"the member `{member.name}` of an input")
            beside.append(b'"%b":%b' % (member.name.encode(), text.part(member)))
        else:
            raise _unknown(member.name)
    written = _decoded(_decode_tensor, b"{%b}" % b",".join(beside))
    if data is not None:
        written.data = msgspec.Raw(text.data[data.start : data.end])
    return written


def _unknown(name: str) -> BadRequest:
    """Return the error of a member that the protocol does not have, in the decoder's words."""
    return BadRequest(f"The body is no inference request in JSON: Object contains unknown field `{name[:SHOWN]}`")


def _check_size(text: JsonText, of: Found, what: str) -> Steps[None]:
    """Check that a value may be decoded at once; long ones by what is in them, too.

    Raises:
        BadRequest: it has too many bytes, or members, or elements.
    """
    if of.size > MOST_BESIDE:
        raise BadRequest(f"There are {of.size} bytes in {what}; beside tensors' data, at most {MOST_BESIDE} are read.")
    if of.size > _DECODED_WHOLE:
        first = text.part(of._replace(end=of.start + 1))
        inner: list[Found] = []
        if first == b"{":
            inner = yield from text.members(of, MOST_PARAMETERS, what)
        elif first == b"[":
            inner = yield from text.elements(of, MOST_PARAMETERS, f"elements in {what}")
        for each in inner:
            yield from _check_size(text, each, what)


def _decoded(decode: Callable[[bytes | memoryview], T], written: bytes | memoryview) -> T:
    try:
        return decode(written)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is no inference request in JSON: {error}") from None


def _wanted(output: _WrittenOutput, binary: bool) -> WantedOutput:
    what = f"output {output.name}"
    if output.parameters:
        check_served(f"Output {output.name}", output.parameters, OF_OUTPUTS)
    chosen = _truth(what, output.parameters, BINARY, binary)
    return WantedOutput(output.name, chosen, read_parameters(what, output.parameters, BINARY))


def _truth(what: str, parameters: RawParameters, name: str, default: bool = False) -> bool:
    value = (parameters or {}).get(name, default)
    if type(value) is not bool:
        raise BadRequest(f"`{name}` of {what} is {shown(value)}; expected true or false.")
    return value
