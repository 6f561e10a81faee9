"""The shape of a row that a TorchScript file takes, read from its pickles without running them.

A traced model keeps the sizes of the inputs that it was traced with. Of a scripted one the first parameter tells: a
Linear layer's last dimension is the length of a row. The first dimension of an input counts the rows of a batch.
"""

import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LARGEST = 16 * 1024 * 1024  # bytes of a pickle; the tensors are beside it
_INTS = ("BININT", "BININT1", "BININT2", "LONG1")


class StoredTensor(NamedTuple):
    """A tensor in a pickle: the class of the module that holds it, and its size."""

    owner: str
    size: tuple[int, ...]


class RowShape(NamedTuple):
    """The shape of one row.

    Attributes:
        certain: whether the model takes this shape; else it is guessed from a parameter.
        indices: whether the values are indices.
    """

    size: tuple[int, ...]
    certain: bool
    indices: bool = False


def row_shape(file: Path) -> RowShape | None:
    """Return the shape of a row; None if the file does not tell."""
    try:
        with zipfile.ZipFile(file) as archive:
            traced = _first(_read(archive, "traced_inputs.pkl"))
            if traced is not None and len(traced.size) > 1:
                return RowShape(traced.size[1:], certain=True)
            first = _first(_read(archive, "data.pkl"))
    except (OSError, zipfile.BadZipFile, ValueError, KeyError):
        return None
    if first is None:
        return None
    if first.owner.endswith(" Linear") and len(first.size) == 2:
        return RowShape(first.size[1:], certain=True)
    if first.owner.endswith(" Embedding") and len(first.size) == 2:
        return RowShape((3,), certain=False, indices=True)
    if first.owner.endswith(" Conv2d") and len(first.size) == 4:
        return RowShape((first.size[1], 224, 224), certain=False)
    return None


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member by the end of its name; empty if there is none, or if it is too large."""
    found = [info for info in archive.infolist() if info.filename.endswith(f"/{name}") and info.file_size <= _LARGEST]
    return archive.read(found[0]) if found else b""


def _first(content: bytes) -> StoredTensor | None:
    return next(_tensors(content), None) if content else None


def _tensors(content: bytes) -> Iterator[StoredTensor]:
    """Yield the tensors of a pickle: after a storage (BINPERSID) come its offset, then the size as a tuple.

    Raises:
        ValueError: the content is no pickle.
    """
    owner = ""
    numbers: list[int] | None = None
    for opcode, argument, _ in pickletools.genops(content):
        if opcode.name == "GLOBAL" and str(argument).startswith("__torch__"):
            owner = str(argument)
        elif opcode.name == "BINPERSID":
            numbers = []
        elif numbers is not None and opcode.name in _INTS:
            numbers.append(int(str(argument)))
        elif numbers is not None and opcode.name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"):
            yield StoredTensor(owner, tuple(numbers[1:]))
            numbers = None
