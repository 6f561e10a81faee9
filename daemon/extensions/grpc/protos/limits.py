"""Limits of a message, counted on its bytes before protobuf builds the message.

Two bytes of a message can become an object of a kilobyte: 8 MiB of empty outputs took 12 s and 800 MiB. So the fields
are counted first, here and in the messages inside, and the count ends at the first one too many. The limits come from
the description of the message, so that a new field has one by itself. Other calls are served between two slices of a
long count: 10 000 fields took 4 to 10 ms in one go.
"""

from functools import cache
from typing import Any, Final

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.model_settings.declarations import MOST_RANK, MOST_TENSORS

MOST_PARAMETERS: Final = 256  # entries of a map; HTTP's forms have as many fields
MOST_FIELDS: Final = 10_000  # of a message and those inside it; a thousand inputs with their raw contents have 7 000
MOST_TEXT: Final = 256 * 1024  # bytes of a text, as in JSON: protobuf checks and copies texts at once, 2 ms a MiB
AT_ONCE: Final = 2_000  # fields
UNCOUNTED: Final = 2 * MOST_PARAMETERS  # bytes that cannot hold more; a field has two at least, a dimension one
LONGEST_NUMBER: Final = 10  # bytes
_NUMBER, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)  # how a field is written


class FieldLimits:
    """The limits of one kind of message.

    Attributes:
        names: of its repeated fields, by number.
        most: how often they may be there, by number.
        packed: the most bytes of the numbers that are written together, by number.
        texts: its texts, by number; bytes are none.
        inner: the limits of the messages inside, by number.
    """

    def __init__(self, descriptor: Any) -> None:
        self.names: dict[int, str] = {}
        self.most: dict[int, int] = {}
        self.packed: dict[int, int] = {}
        self.texts: dict[int, str] = {}
        self.inner: dict[int, FieldLimits] = {}
        for field in descriptor.fields:
            number = field.number
            if field.is_repeated:
                self.names[number], self.most[number] = field.name, most_of(field)
                if field.is_packed:
                    self.packed[number] = most_of(field) * LONGEST_NUMBER
            if field.type == field.TYPE_STRING:
                self.texts[number] = field.name
            if field.message_type is not None:
                self.inner[number] = limits_of(field.message_type)


def most_of(field: Any) -> int:
    """Return how often a repeated field may be there: parameters, dimensions, or tensors."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return MOST_PARAMETERS
    return MOST_RANK if field.is_packed else MOST_TENSORS


@cache
def limits_of(descriptor: Any) -> FieldLimits:
    """Return the limits of the messages with this description, none of which contains itself."""
    return FieldLimits(descriptor)


def check_steps(descriptor: Any, data: bytes) -> Steps[None]:
    """Check, in steps, that a message has no more fields than it may.

    Raises:
        BadRequest: there are more, or the bytes are no message.
    """
    if len(data) > UNCOUNTED:
        try:
            yield from _count(limits_of(descriptor), data)
        except IndexError:
            raise BadRequest(f"The message is no {descriptor.full_name}: a field does not end within it.") from None


def _count(limits: FieldLimits, data: bytes) -> Steps[None]:
    """Count the fields, in steps; raise IndexError where one does not end within its message."""
    at, end, fields = 0, len(data), 0
    counts: dict[int, int] = {}
    around: list[tuple[FieldLimits, dict[int, int], int]] = []  # the messages that the one at hand is in
    while True:
        while at == end:
            if not around:
                return
            limits, counts, end = around.pop()
        fields += 1
        if fields > MOST_FIELDS:
            raise BadRequest(f"The message has more than {MOST_FIELDS} fields, with those of the messages in it.")
        if not fields % AT_ONCE:
            yield
        tag = data[at]
        at += 1
        if tag >= 128:
            tag, at = read_number(data, at - 1)
        number, written = tag >> 3, tag & 7
        most = limits.most.get(number)
        if most is not None:
            count = counts.get(number, 0) + 1
            if count > most:
                raise _too_many(limits.names[number], most)
            counts[number] = count
        if written == _BYTES:
            length = data[at]
            at += 1
            if length >= 128:
                length, at = read_number(data, at - 1)
            if at + length > end:
                raise IndexError
            inner = limits.inner.get(number)
            if inner is not None:
                around.append((limits, counts, end))
                limits, counts, end = inner, {}, at + length
                continue
            if length > MOST_TEXT and number in limits.texts:
                what = f"The text `{limits.texts[number]}` of the message has {length} bytes"
                raise BadRequest(f"{what}; at most {MOST_TEXT} are read.")
            if length > limits.packed.get(number, length):
                raise _too_many(limits.names[number], limits.most[number])
            at += length
        elif written == _NUMBER:
            if data[at] < 128:
                at += 1
            else:
                _, at = read_number(data, at)
        elif written in (_FIXED32, _FIXED64):
            at += 4 if written == _FIXED32 else 8
        elif written not in (_GROUP, _GROUP_END):
            raise IndexError
        if at > end:
            raise IndexError


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of several bytes, and where it ends. Raise IndexError if it does not."""
    number = shift = 0
    for place in range(at, at + LONGEST_NUMBER):
        byte = data[place]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place + 1
        shift += 7
    raise IndexError


def write_number(number: int) -> bytes:
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _too_many(name: str, most: int) -> BadRequest:
    return BadRequest(f"The message has more than {most} `{name}` in one place; at most {most} are read.")
