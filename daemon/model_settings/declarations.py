"""The tensors that a model takes and returns, as its model-config.yaml declares them.

    inputs:
      - {name: INPUT0, datatype: INT32, shape: [-1, 16]}

The words are those of the metadata of the Open Inference Protocol (version 2), so that an answer of one server can be
the declaration for another.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tsctl.daemon.model_settings.kinds import MOST, ValueKind

DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BF16",
    "BYTES",
)  # fmt: skip
MOST_TENSORS = 1000  # of one model
MOST_RANK = 32  # dimensions of one tensor; NumPy 1 allows as many
LONGEST_NAME = 1000  # characters
_EXAMPLE = "{name: INPUT0, datatype: INT32, shape: [-1, 16]}"


class DeclaredTensor(NamedTuple):
    """One declared tensor.

    Attributes:
        shape: the dimensions; -1 is any size.
        optional: a request may leave the input out, or a handler the output, also one that is asked for.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False


class Declarations(ValueKind):
    """A list of tensors; a tuple of `DeclaredTensor` inside the program."""

    stored = Any
    what = f"a list of tensors such as {_EXAMPLE}"

    def read(self, value: Any) -> tuple[DeclaredTensor, ...]:
        if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
            raise ValueError(self.what)
        if len(value) > MOST_TENSORS:
            raise ValueError(f"at most {MOST_TENSORS} tensors")
        read = tuple(map(self._read_one, value))
        names = [each.name for each in read]
        twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
        if twice is not None:
            raise ValueError(f"each name once; `{twice}` is there twice")
        return read

    def show(self, value: tuple[DeclaredTensor, ...]) -> list[dict[str, Any]]:
        return [show_declaration(each) | ({"optional": True} if each.optional else {}) for each in value]

    def _read_one(self, tensor: Mapping[str, Any]) -> DeclaredTensor:
        name, datatype, shape = tensor.get("name"), tensor.get("datatype"), tensor.get("shape")
        known = ("name", "datatype", "shape", "optional")
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise ValueError(f"a `name` in each tensor, as in {_EXAMPLE}")
        if unknown := [key for key in tensor if key not in known]:
            raise ValueError(f"no `{unknown[0]}` in `{name}`, but {', '.join(known)}")
        if datatype not in DATATYPES:
            raise ValueError(f"the `datatype` of `{name}` to be one of {', '.join(DATATYPES)}")
        if not isinstance(shape, list) or len(shape) > MOST_RANK or not all(map(_is_dimension, shape)):
            raise ValueError(f"the `shape` of `{name}` to be a list of at most {MOST_RANK} whole numbers from -1 (any)")
        optional = tensor.get("optional", False)
        if type(optional) is not bool:
            raise ValueError(f"`optional` of `{name}` to be true or false")
        return DeclaredTensor(name, datatype, tuple(shape), optional)


def show_declaration(tensor: DeclaredTensor) -> dict[str, Any]:
    """Return a tensor in the words of the protocol's metadata."""
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}


def _is_dimension(value: Any) -> bool:
    return type(value) is int and -1 <= value <= MOST
