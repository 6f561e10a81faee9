"""The typed contents of a tensor (InferTensorContents), from the bytes of the message to those of the elements.

Numbers of a fixed size stand there as in the tensor. Others are parsed by protobuf, some KiB at a time, and texts are
read one by one; other requests are served in between.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tsctl.daemon.core.arena import COPIED_AT_ONCE, Gathered, Payload, Take
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.grpc.protos.limits import LONGEST_NUMBER, read_number, write_number
from tsctl.daemon.extensions.tensors.elements import LENGTH, pack, size_of

SLICE: Final = 16 * 1024  # bytes of numbers at a time, or of fields with one number each
_MOST_TEXTS: Final = 2048  # at a time
_NUMBER, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # how a field is written
_TEXTS: Final = 8  # the number of `bytes_contents`
_SIZES: Final = {6: 4, 7: 8}  # of fp32_contents and fp64_contents: bytes of an element
_KINDS: Final = {6: _FIXED32, 7: _FIXED64, _TEXTS: _BYTES}  # of a field with one element; others are _NUMBER


def pack_contents(
    datatype: str,
    written: bytes,
    number: int,
    parse: Callable[[bytes], Sequence[Any]],
    most: int,
    take: Take | None,
) -> Steps[tuple[Payload, int]]:
    """Return the elements of one field of the contents as a tensor's bytes, and how many they are.

    Args:
        written: the message; its other fields are skipped.
        number: the field's.
        parse: returns the values in a short message with nothing but this field.
        most: elements; reading ends where there are more, and returns them.
        take: returns a place in the arena for the elements, as in `Gathered`.

    Raises:
        BadRequest: the message is malformed, or an element is not of the datatype.
    """
    # Each number has at least one byte, each text two: its tag and its length.
    size = size_of(datatype)
    packed = Gathered(take, min(most, len(written)) * size if size else 2 * len(written))
    count, at, end, begun, rest = 0, 0, len(written), 0, SLICE
    single: list[bytes] = []  # fields with one element each that were not parsed yet
    short: list[bytes] = []  # of this slice; a list of all of them would cost forty times a short text
    try:
        while at < end and count <= most:
            start = at
            tag, at = read_number(written, at)
            kind = tag & 7
            if kind == _BYTES:
                length, at = read_number(written, at)
                stop = at + length
            elif kind == _NUMBER:
                stop = read_number(written, at)[1]
            elif kind in (_FIXED32, _FIXED64):
                stop = at + (4 if kind == _FIXED32 else 8)
            else:
                raise IndexError
            if stop > end:
                raise IndexError
            begun += 1
            rest -= stop - start
            if tag >> 3 != number or kind not in (_BYTES, _KINDS.get(number, _NUMBER)):
                pass
            elif number == _TEXTS:
                short.append(LENGTH.pack(stop - at))
                short.append(written[at:stop])
                count += 1
            elif kind != _BYTES:
                single.append(written[start:stop])
            elif single:  # of both kinds, which nobody writes
                raise IndexError
            elif number in _SIZES:
                if (stop - at) % _SIZES[number]:
                    raise IndexError
                count += (stop - at) // _SIZES[number]
                while stop - at > COPIED_AT_ONCE and count <= most:
                    short.append(written[at : at + COPIED_AT_ONCE])
                    at += COPIED_AT_ONCE
                    packed.add_piece(b"".join(short))
                    short = []
                    yield
                short.append(written[at:stop] if count <= most else b"")
            else:
                while at < stop and count <= most:
                    cut = min(at + SLICE, stop)
                    latest = min(cut + LONGEST_NUMBER, stop)
                    while written[cut - 1] >= 128 and cut < latest:
                        cut += 1
                    values = parse(bytes((number << 3 | _BYTES,)) + write_number(cut - at) + written[at:cut])
                    short.append(pack(datatype, values))
                    count, at = count + len(values), cut
                    if at < stop:
                        packed.add_piece(b"".join(short))
                        short = []
                        yield
            at = stop
            if begun >= _MOST_TEXTS or rest <= 0 or at == end:
                if single:
                    values = parse(b"".join(single))
                    short.append(pack(datatype, values))
                    count, single = count + len(values), []
                packed.add_piece(b"".join(short))
                short = []
                if at < end:
                    begun, rest = 0, SLICE
                    yield
    except IndexError:
        raise BadRequest("a number does not end where it should.") from None
    return packed.payload(), count
