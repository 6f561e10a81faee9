"""An inference request from a file: the protocol's JSON, or the bytes of the model's one input."""

import json
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Values = dict[str, bool | int | float | str]
_EXAMPLE = '{"inputs": [{"name": …, "datatype": …, "shape": […], "data": […]}]}'

# Datatype → the letter of `struct`. BF16 has none.
_LETTERS = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
    "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RequestTensor:
    """An input, with the bytes of its elements."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: bytes
    parameters: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestInTensors:
    """One inference request.

    Attributes:
        outputs: the names and parameters of the wanted outputs; all are wanted if it is empty.
    """

    inputs: list[RequestTensor]
    id: str = ""
    parameters: Values = field(default_factory=dict)
    outputs: list[tuple[str, Values]] = field(default_factory=list)


def read_inference_request(content: bytes, metadata: Callable[[], Any]) -> RequestInTensors:
    """Return the request in a file.

    Args:
        content: the protocol's JSON if it has `inputs`; else the elements of the model's only input.
        metadata: returns the document of the model's metadata, which names that input; not called for JSON.

    Raises:
        ValueError: the request is none; the text says why.
    """
    try:
        document = json.loads(content) if content.lstrip()[:1] == b"{" else None
    except ValueError:
        document = None
    if isinstance(document, dict) and "inputs" in document:
        return _of_json(document)
    return RequestInTensors([_of_bytes(content, metadata()["inputs"])])


def _of_json(document: Any) -> RequestInTensors:
    try:
        inputs = [_input(each) for each in document["inputs"]]
        outputs = [(str(each["name"]), dict(each.get("parameters", {}))) for each in document.get("outputs", ())]
        return RequestInTensors(inputs, str(document.get("id", "")), dict(document.get("parameters", {})), outputs)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"expected a request of the Open Inference Protocol: {_EXAMPLE}") from None


def _input(written: Any) -> RequestTensor:
    name, datatype, shape = str(written["name"]), str(written["datatype"]), tuple(map(int, written["shape"]))
    try:
        data = packed(datatype, written["data"])
    except ValueError as error:
        raise ValueError(f"input `{name}`: {error}") from None
    return RequestTensor(name, datatype, shape, data, dict(written.get("parameters", {})))


def _of_bytes(content: bytes, declared: Sequence[Any]) -> RequestTensor:
    if len(declared) != 1:
        raise ValueError(
            f"the model declares {len(declared)} inputs, so that bytes alone are no request:"
            f" put a request in JSON into the file: {_EXAMPLE}"
        )
    name, datatype = declared[0]["name"], declared[0]["datatype"]
    shape = tuple(declared[0]["shape"])
    if datatype == "BYTES":
        content = len(content).to_bytes(4, "little") + content
        elements = 1
    else:
        elements, rest = divmod(len(content), size_of(datatype))
        if rest:
            raise ValueError(f"{len(content)} bytes are no whole number of elements of {datatype} (input `{name}`)")
    known = math.prod(size for size in shape if size != -1)
    if shape.count(-1) > 1 or (elements % known if known else elements) or (-1 not in shape and elements != known):
        raise ValueError(
            f"{elements} elements of {datatype} do not tell the shape of input `{name}`, which is declared as"
            f" {list(shape)}: put a JSON request with its `shape` into the file"
        )
    return RequestTensor(
        name, datatype, tuple(elements // known if size == -1 and known else max(size, 0) for size in shape), content
    )


def size_of(datatype: str) -> int:
    """Return the bytes of one element; 0 for BYTES, whose elements have a length each, and for unknown datatypes."""
    return 2 if datatype == "BF16" else struct.calcsize(_LETTERS.get(datatype, ""))


def packed(datatype: str, data: Any) -> bytes:
    """Return the bytes of elements that JSON holds, as a flat or a nested list.

    They are little-endian, row by row; those of BYTES each after their length.

    Raises:
        ValueError: an element does not fit the datatype, or JSON has no way to write elements of this datatype.
    """
    elements = list(_flat(data))
    if datatype == "BYTES":
        if not all(isinstance(each, str) for each in elements):
            raise ValueError("elements of BYTES are strings in JSON")
        texts = [each.encode() for each in elements]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    letter = _LETTERS.get(datatype)
    if letter is None:
        raise ValueError(f"elements of `{datatype}` cannot be packed from JSON")
    try:
        return struct.pack(f"<{len(elements)}{letter}", *elements)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"elements of {datatype}: {error}") from None


def _flat(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        for each in data:
            yield from _flat(each)
    else:
        yield data
