"""Parser of application/x-www-form-urlencoded bodies, in slices of bounded cost.

    name=value&name=value&…

    NAME ──=──▶ VALUE ──&──▶ NAME        a field without `=` is empty, and is ignored if it is the only one or too long
                                         (SKIPPED); all as by TorchServe

One routine in C decodes escapes: binascii.a2b_qp, a parser of quoted-printable, which has `=` where a form has `%`.
First, the form's own `=` becomes `=3D`, and each `%` is checked for its two digits; so no other syntax of
quoted-printable (soft line breaks) can occur. urllib's unquote_to_bytes splits at each `%`: a percent-encoded image of
5 MiB took 3 s.

Large values of a body in the arena are decoded into a second block of the arena, so that no frame has to copy them.
"""

import re
from binascii import a2b_qp
from typing import Final

from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param

MOST_FIELDS: Final = 256
MOST_NAME_BYTES: Final = 8192  # of a field, as sent
SLICE: Final = 64 * 1024  # bytes: at most 1.5 ms, if every byte is `=` (2-core Xeon VM)
_LARGE: Final = 4096  # decoded bytes; larger values are worth a block in the arena
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")

_CONTROL = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f]")  # in no text, and in the first bytes of any image or sound
_START: Final = 64

_NAME: Final = 0
_VALUE: Final = 1
_SKIPPED: Final = 2


def is_file(body: Payload) -> bool:
    """Return whether a body is no form but a file, as by `curl --data-binary @cat.jpg`, which calls it a form.

    A byte that no text has, before the first `=`, is none of a form. In some formats the sign may come before that by
    chance, in the size.
    """
    start = first_bytes(body, _START)
    found = _CONTROL.search(start)
    if found is None:
        return False
    return (
        b"=" not in start[: found.start()]
        or start.startswith((b"GIF87a", b"GIF89a"))
        or (start.startswith(b"RIFF") and start[8:12] in (b"WEBP", b"WAVE"))
        or (start.startswith(b"BM") and start[6:10] == bytes(4))
    )


def first_bytes(body: Payload, count: int) -> bytes:
    """Return at most so many bytes from the beginning of a body."""
    return part_of(body, 0, min(len(body), count))


def part_of(body: Payload, start: int, stop: int) -> bytes:
    """Return these bytes of a body: a copy, but for all of one that is not in the arena."""
    if isinstance(body, Lease):
        return bytes(body.part(start, stop).view)
    return body if stop - start == len(body) else body[start:stop]


def unquote(text: bytes) -> bytes:
    """Decode `%XX` and `+` in linear time.

    Raises:
        BadRequest: an escape lacks its two hexadecimal digits.
    """
    if b"+" in text:
        text = text.replace(b"+", b" ")
    if b"%" not in text:
        return text
    broken = _BROKEN.search(text)
    if broken is not None:
        at = broken.start()
        raise BadRequest(f"The form has a broken escape: `{text[at : at + 3].decode('latin-1')}`.")
    return a2b_qp(text.replace(b"=", b"=3D").replace(b"%", b"="))


def read_fields(body: bytes) -> list[Param]:
    """Return the fields of a form of at most one slice; takes a third of the time of `Urlencoded` for one field.

    Raises:
        BadRequest: the form is malformed or exceeds a limit.
    """
    pairs = body.split(b"&", MOST_FIELDS)
    if len(pairs) > MOST_FIELDS and pairs[MOST_FIELDS]:
        raise _too_many()
    params: list[Param] = []
    for pair in pairs:
        name, equals, value = pair.partition(b"=")
        if not equals and (not name or len(pairs) == 1 or len(name) > MOST_NAME_BYTES):
            continue
        if not name:
            raise _no_name(pair)
        if len(name) > MOST_NAME_BYTES:
            raise _name_too_long()
        params.append(Param(unquote(name).decode("utf-8", "replace"), "", unquote(value)))
    return params


def _too_many() -> BadRequest:
    return BadRequest(f"The form has more than {MOST_FIELDS} fields. Send fewer, or JSON (application/json).")


def _no_name(pair: bytes) -> BadRequest:
    return BadRequest(f"The form has a field without a name: `{pair[:100].decode('latin-1')}`.")


def _name_too_long() -> BadRequest:
    return BadRequest(
        f"The name of a form's field has more than {MOST_NAME_BYTES} bytes. If the body is no form, send"
        " its own Content-Type, such as application/json."
    )


class Urlencoded:
    """The parser of one body.

    Attributes:
        params: the parameters of the fields parsed so far, in their order; names may repeat.
    """

    def __init__(self, body: Payload) -> None:
        self.params: list[Param] = []
        self._body = body
        self._state = _NAME
        self._at = 0  # bytes of the body parsed so far
        self._fields = 0
        self._name = b""
        self._pieces: list[bytes] = []  # of the value being read, decoded
        self._place: Lease | None = None  # the block for large decoded values
        self._used = 0  # bytes of that block
        self._begin = 0  # of the value being read, in that block
        self._there = False  # the value being read is in that block

    def advance(self) -> bool:
        """Parse one slice; return whether that slice was the last.

        Raises:
            BadRequest: the form is malformed or exceeds a limit.
        """
        start, size = self._at, len(self._body)
        stop = min(size, start + SLICE)
        window = part_of(self._body, start, stop)
        last = stop == size
        position = 0
        while position < len(window):
            if self._state == _NAME:
                after = self._read_name(window, position, last)
            elif self._state == _VALUE:
                after = self._read_value(window, position, last)
            else:
                after = self._skip(window, position)
            if after < 0:
                break  # the rest belongs to the next slice
            position = after
        self._at = start + position
        if self._at < size:
            return False
        if self._state == _VALUE:
            self._end_value()  # an empty value at the end
        return True

    def _count(self) -> None:
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise _too_many()

    def _read_name(self, window: bytes, position: int, last: bool) -> int:
        """Parse a name up to `=`; return the end, or -1 if the slice ends within the name."""
        limit = position + MOST_NAME_BYTES + 1
        equals = end = window.find(b"=", position, limit)
        if equals < 0:
            end = limit
        ampersand = window.find(b"&", position, end)
        if ampersand >= 0:
            self._count()
            self._end_empty(window[position:ampersand])
            return ampersand + 1
        if equals < 0:
            if limit > len(window) and not last:
                return -1
            self._count()
            if limit > len(window) and self._fields > 1:
                self._end_empty(window[position:])
                return len(window)
            self._state = _SKIPPED
            return min(limit, len(window))
        self._count()
        if equals == position:
            raise _no_name(window[position : position + 100].partition(b"&")[0])
        self._name = window[position:equals]
        self._state = _VALUE
        return equals + 1

    def _skip(self, window: bytes, position: int) -> int:
        """Skip to the next field; reject an overlong text before `=` as a name."""
        ampersand = end = window.find(b"&", position)
        if ampersand < 0:
            end = len(window)
        if window.count(b"=", position, end):
            raise _name_too_long()
        if ampersand < 0:
            return len(window)
        self._state = _NAME
        return ampersand + 1

    def _read_value(self, window: bytes, position: int, last: bool) -> int:
        """Parse a value or a piece of one; return the end, or -1 if more bytes are needed."""
        ampersand = end = window.find(b"&", position)
        if ampersand < 0:
            end = len(window)
        if ampersand < 0 and not last:  # do not split an escape
            cut = window.rfind(b"%", max(position, end - 2))
            if cut >= 0:
                end = cut
            if end == position:
                return -1
        whole = ampersand >= 0 or last
        self._keep(unquote(window[position:end]), whole)
        if not whole:
            return end
        self._end_value()
        return min(end + 1, len(window))

    def _keep(self, piece: bytes, whole: bool) -> None:
        """Store a decoded piece of a value; `whole` if this piece completes the value."""
        body = self._body
        large = len(piece) >= _LARGE or not whole
        if large and not self._pieces and not self._there and isinstance(body, Lease):
            if self._place is None:
                self._place = body.beside(len(body))
            self._there = self._place is not None
            self._begin = self._used
        if self._there and self._place is not None:
            self._place.part(self._used, self._used + len(piece)).view[:] = piece
            self._used += len(piece)
        else:
            self._pieces.append(piece)

    def _end_empty(self, name: bytes) -> None:
        if name:
            self.params.append(Param(unquote(name).decode("utf-8", "replace"), "", b""))

    def _end_value(self) -> None:
        value: Payload
        if self._there and self._place is not None:
            value = self._place.part(self._begin, self._used)
        else:
            value = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        name = unquote(self._name).decode("utf-8", "replace")
        self.params.append(Param(name, "", value))
        self._pieces, self._there = [], False
        self._state = _NAME
