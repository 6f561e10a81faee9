"""`kservev2`: KServe's v2 protocol (Open Inference Protocol): named tensors in and out.

The handler's rows are the request's inputs, objects with `name`, `shape`, `datatype` and `data`; each returned item
becomes the output with the name of its input, flattened, as in TorchServe.
"""

from typing import Any, NamedTuple

import numpy

from tsctl.handlers.envelopes.envelope import Envelope, Opened, list_of, object_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import NotSerialisable, UnreadablePayload
from tsctl.handlers.tensors.datatypes import datatype_of


class _Memory(NamedTuple):
    id: str
    names: list[str]


class KServev2Envelope(Envelope):
    def open(self, row: Any) -> Opened:
        document = object_of(row)
        inputs = [_input(each) for each in list_of(document, "inputs")]
        request_id = document.get("id")
        named = request_id if isinstance(request_id, str) and request_id.strip() else ""
        return Opened(inputs, _Memory(named, [each["name"] for each in inputs]))

    def seal(self, request: Opened, items: list[Any], context: Context) -> dict[str, Any]:
        memory: _Memory = request.memory
        names = memory.names + [f"output-{index}" for index in range(len(memory.names), len(items))]
        model = context.manifest.get("model", {})
        return {
            "id": memory.id or context.get_request_id(0),
            "model_name": model.get("modelName"),
            "model_version": model.get("modelVersion"),
            "outputs": [_output(name, item) for name, item in zip(names, items, strict=False)],
        }


def _input(tensor: Any) -> dict[str, Any]:
    """Check one input, and reshape its data to the given shape."""
    try:
        name, shape, datatype, data = (tensor[key] for key in ("name", "shape", "datatype", "data"))
    except (KeyError, TypeError, IndexError):
        raise UnreadablePayload("An input of the request lacks one of `name`, `shape`, `datatype` and `data`") from None
    try:
        if datatype == "BYTES":
            if not isinstance(data, (list, str)):
                raise TypeError(f"expected a list of texts, got {type(data).__name__}")
            data = data[0] if len(data) == 1 else data  # handlers of texts take a single text
        else:
            data = numpy.array(data).reshape(shape).tolist()
    except (TypeError, ValueError) as error:
        raise UnreadablePayload(f"The data of the input `{name}` does not have the shape {shape}: {error}") from None
    return {**tensor, "data": data}


def _output(name: str, item: Any) -> dict[str, Any]:
    """Convert an item to an output tensor: numbers, nested lists of them, a tensor, texts, or another single value."""
    try:
        array = item.numpy(force=True) if hasattr(item, "numpy") else numpy.array(item)
    except ValueError:  # lists of different lengths
        array = numpy.array(None)
    except TypeError as error:  # a tensor of a type that NumPy lacks
        raise NotSerialisable(f"The output `{name}` is not an array: {error}") from error
    datatype = datatype_of(array)
    if datatype is None:
        raise NotSerialisable(f"The output `{name}` has the element type {array.dtype}, which the protocol lacks")
    data = [item] if array.dtype == object else array.flatten().tolist()  # no array of numbers or texts is sent whole
    return {"name": name, "datatype": datatype, "data": data, "shape": [len(data)]}
