"""Large tensors in JSON, packed in slices: other requests are served between two of them.

The syntax is checked before, in one go (C: 1.4 ms for 150 000 numbers); elements cost far more, and nothing else
bounds them: 6.5 MiB of empty texts would hold the event loop for a second.

Numbers are decoded as the text between brackets, in windows that end at a comma; texts, which may hold brackets and
commas, by their quotation marks. Between two elements there must be as many brackets as the shape says.
"""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul
from typing import Any, Final

import msgspec

from tsctl.daemon.core.arena import Gathered, Payload, Take
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.tensors.elements import pack_typed, size_of

SLICED_FROM: Final = 16 * 1024  # bytes of JSON; at most 2.5 ms in one go, whatever they are (2-core Xeon VM)
WINDOW: Final = 32 * 1024  # bytes of numbers at a time, at most 2 ms
_LIST: Final = 32  # bytes of numbers that take as long as a list around them
_MOST_TEXTS: Final = 4096  # at a time
_MOST_TEXT_BYTES: Final = 256 * 1024  # of them
_BRACKETS = re.compile(rb"[\[\], \t\r\n]*")
_TEXTS = re.compile(rb'(?:"(?:[^"\\]++|\\.)*+"[ \t\r\n]*+,[ \t\r\n]*+){1,4096}+', re.DOTALL)  # and a comma after each
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SPACE = b" \t\r\n"


class _Misfit(Exception):
    """The lists do not have the shape."""


def pack_numbers(
    what: str,
    datatype: str,
    shape: Sequence[int],
    data: bytes,
    decode: Callable[[bytes], Any],
    take: Take | None,
) -> Steps[Payload]:
    """Pack numbers and truth values; yield between two slices.

    Args:
        what: the tensor, for the sentence: "input INPUT0".
        shape: as the lists are nested, with one element at least.
        data: valid JSON.
        decode: returns the elements of a flat list in JSON.
        take: returns a place in the arena for the elements, as in `Gathered`.

    Raises:
        BadRequest: an element is not of the datatype, or the lists do not have the shape.
    """
    expected = _Between(shape)
    fitting = min(expected.count, len(data) // 2 + 1)  # each with a comma or a bracket
    packed = Gathered(take, fitting * size_of(datatype))
    texts, size, waiting, number = [], 0, 0, 0
    if (first := _BRACKETS.match(data)) is None or first.group().translate(None, _SPACE) != b"[" * len(shape):
        raise _unfit(what, shape)
    at = first.end()
    while True:
        end = data.find(b"]", at)
        listed = 0
        while at <= end:
            stop = data.find(b",", min(at + WINDOW, end), end)
            stop = end if stop < 0 else stop
            text = data[at:stop]
            at = stop + 1
            texts.append(text)
            here = text.count(b",") + 1
            listed, waiting, size = listed + here, waiting + here, size + len(text) + _LIST
            if size >= WINDOW:
                packed.add_piece(_packed(what, datatype, decode, texts, waiting))
                texts, size, waiting = [], 0, 0
                yield
        if listed != shape[-1]:
            raise _unfit(what, shape)
        number += listed
        try:
            at = expected.check(data, end, number)
        except _Misfit:
            raise _unfit(what, shape) from None
        if number == expected.count:
            break
    if texts:
        packed.add_piece(_packed(what, datatype, decode, texts, waiting))
    return packed.payload()


def pack_texts(
    what: str,
    shape: Sequence[int],
    data: bytes,
    decode: Callable[[bytes], Any],
    take: Take | None,
) -> Steps[Payload]:
    """Pack elements of BYTES, as `pack_numbers`."""
    expected = _Between(shape)
    packed = Gathered(take, len(data) + 2 * min(expected.count, len(data)))  # four bytes for the quotes of each
    texts: list[bytes] = []
    size = at = number = 0
    try:
        at = expected.check(data, 0, 0)
        while len(shape) == 1 and (run := _TEXTS.match(data, at, at + _MOST_TEXT_BYTES)) is not None:
            values = _decoded(what, "BYTES", decode, run.group().rstrip(_SPACE)[:-1])
            packed.add_piece(pack_values(what, "BYTES", values))
            number += len(values)
            if number >= expected.count:
                raise _Misfit
            at = run.end()
            yield
        while number < expected.count:
            found = _TEXT.match(data, at)
            if found is None:
                raise _Misfit
            texts.append(found.group())
            size += len(texts[-1])
            number += 1
            at = expected.check(data, found.end(), number)
            if len(texts) >= _MOST_TEXTS or size >= _MOST_TEXT_BYTES:
                packed.add_piece(_packed(what, "BYTES", decode, texts, len(texts)))
                texts, size = [], 0
                yield
    except _Misfit:
        raise _unfit(what, shape) from None
    if texts:
        packed.add_piece(_packed(what, "BYTES", decode, texts, len(texts)))
    return packed.payload()


class _Between:
    """The brackets and commas between two elements of nested lists of a shape, and around them all."""

    def __init__(self, shape: Sequence[int]) -> None:
        self._depth = len(shape)
        *self._sizes, self.count = accumulate(reversed(shape), mul)  # elements of a list, from the innermost on

    def check(self, data: bytes, at: int, number: int) -> int:
        """Check the brackets after `number` elements, and return where the next element begins.

        Raises:
            _Misfit: there are others.
        """
        found = _BRACKETS.match(data, at)
        assert found is not None
        text = found.group()
        if number in (0, self.count):
            expected = (b"]" if number else b"[") * self._depth
        else:
            ended = sum(not number % size for size in self._sizes)
            expected = b"]" * ended + b"," + b"[" * ended
        if text != expected and text.translate(None, _SPACE) != expected:
            raise _Misfit
        return found.end()


def _packed(what: str, datatype: str, decode: Callable[[bytes], Any], texts: Sequence[bytes], count: int) -> bytes:
    values = _decoded(what, datatype, decode, b",".join(texts))
    if len(values) != count:
        raise BadRequest(f"The data of {what} has an empty list, which does not fit its shape.")
    return pack_values(what, datatype, values)


def _decoded(what: str, datatype: str, decode: Callable[[bytes], Any], text: bytes) -> Sequence[Any]:
    try:
        values: Sequence[Any] = decode(b"[" + text + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest(f"The data of {what} is not {datatype}, or not of its shape.") from None
    return values


def pack_values(what: str, datatype: str, values: Sequence[Any]) -> bytes:
    """Return the bytes of flat values, as `pack_typed`; the error names the tensor."""
    try:
        return pack_typed(datatype, values)
    except BadRequest as error:
        raise BadRequest(f"The data of {what}: {error}") from None


def _unfit(what: str, shape: Sequence[int]) -> BadRequest:
    return BadRequest(f"The elements and lists in the data of {what} do not fit the shape {list(shape)}.")
