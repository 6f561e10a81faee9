"""An application/x-www-form-urlencoded body, read in slices of bounded cost.

    name=value&name=value&…

    NAME ──=──▶ VALUE ──&──▶ NAME        what has no `=` until the next `&` is left out, as TorchServe does (SKIPPED)

Escapes are decoded by one routine in C, binascii.a2b_qp, that reads quoted-printable: `=` where a form has `%`. Before
that, a form's own `=` becomes `=3D`, and each `%` is known to have its two digits; so nothing else of quoted-printable
(soft line ends) can occur. urllib's unquote_to_bytes splits at each `%`: 5 MiB of a percent-encoded image took 3 s.

Large values of a body in the arena are decoded into a second place there, so that no frame has to copy them.
"""

import re
from binascii import a2b_qp
from typing import Final

from daemon.arena import Payload, Stored
from daemon.errors import BadRequest
from daemon.job import Param

MOST_FIELDS: Final = 256
MOST_NAME_BYTES: Final = 8192  # of a field, as sent
SLICE: Final = 64 * 1024  # bytes: at most 1.5 ms, where each is `=` (2-core Xeon VM)
_LARGE: Final = 4096  # bytes of a value, decoded, that is worth a place in the arena
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")

_NAME: Final = 0
_VALUE: Final = 1
_SKIPPED: Final = 2


def unquote(text: bytes) -> bytes:
    """Decode `%XX` and `+`; time in proportion to the length.

    Raises:
        BadRequest: an escape has no two hexadecimal digits.
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
    """Return the fields of a form that is no longer than a slice: a third of what the steps below take, for one field.

    Raises:
        BadRequest: it is no form, or has too much of something.
    """
    pairs = body.split(b"&", MOST_FIELDS)
    if len(pairs) > MOST_FIELDS and pairs[MOST_FIELDS]:
        raise _too_many()
    params: dict[str, Param] = {}
    for pair in pairs:
        name, equals, value = pair.partition(b"=")
        if not equals:
            continue
        if not name:
            raise _no_name(pair)
        if len(name) > MOST_NAME_BYTES:
            raise _name_too_long()
        text = unquote(name).decode("utf-8", "replace")
        params[text] = Param(text, "", unquote(value))
    return list(params.values())


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
    """Reads one body.

    Attributes:
        params: a parameter for each field so far, by name; of repeated names the last counts.
    """

    def __init__(self, body: Payload) -> None:
        self.params: dict[str, Param] = {}
        self._body = body
        self._state = _NAME
        self._at = 0  # up to here the body is read
        self._fields = 0
        self._name = b""
        self._pieces: list[bytes] = []  # of the value being read, decoded
        self._place: Stored | None = None  # where large values are decoded to
        self._used = 0  # bytes of that place
        self._begin = 0  # of the value being read, in that place
        self._there = False  # the value being read is there

    def advance(self) -> bool:
        """Read one slice; return whether that was the last.

        Raises:
            BadRequest: it is no form, or has too much of something.
        """
        body, start, size = self._body, self._at, len(self._body)
        stop = min(size, start + SLICE)
        if isinstance(body, Stored):
            window = bytes(body.part(start, stop).view)
        else:
            window = body if stop - start == size else body[start:stop]
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
            self._end_value()  # an empty one, at the end
        return True

    def _count(self) -> None:
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise _too_many()

    def _read_name(self, window: bytes, position: int, last: bool) -> int:
        """Read what is before an `=`; return where that ended, -1 where more must be seen of it."""
        limit = position + MOST_NAME_BYTES + 1
        equals = end = window.find(b"=", position, limit)
        if equals < 0:
            end = limit
        ampersand = window.find(b"&", position, end)
        if ampersand >= 0:
            self._count()
            return ampersand + 1
        if equals < 0:
            if limit > len(window) and not last:
                return -1
            self._state = _SKIPPED
            return min(limit, len(window))
        self._count()
        if equals == position:
            raise _no_name(window[position : position + 100].partition(b"&")[0])
        self._name = window[position:equals]
        self._state = _VALUE
        return equals + 1

    def _skip(self, window: bytes, position: int) -> int:
        """Leave out what is too long for a name, unless it is one."""
        ampersand = end = window.find(b"&", position)
        if ampersand < 0:
            end = len(window)
        if window.count(b"=", position, end):
            raise _name_too_long()
        if ampersand < 0:
            return len(window)
        self._count()
        self._state = _NAME
        return ampersand + 1

    def _read_value(self, window: bytes, position: int, last: bool) -> int:
        """Read a value, or a slice of it; return where that ended, -1 where more must be seen of it."""
        ampersand = end = window.find(b"&", position)
        if ampersand < 0:
            end = len(window)
        if ampersand < 0 and not last:  # no escape is cut in two
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
        """Keep a piece of a value, decoded. `whole`: nothing more of it comes."""
        body = self._body
        large = len(piece) >= _LARGE or not whole
        if large and not self._pieces and not self._there and isinstance(body, Stored):
            if self._place is None:
                self._place = body.beside(len(body))
            self._there = self._place is not None
            self._begin = self._used
        if self._there and self._place is not None:
            self._place.part(self._used, self._used + len(piece)).view[:] = piece
            self._used += len(piece)
        else:
            self._pieces.append(piece)

    def _end_value(self) -> None:
        value: Payload
        if self._there and self._place is not None:
            value = self._place.part(self._begin, self._used)
        else:
            value = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        name = unquote(self._name).decode("utf-8", "replace")
        self.params[name] = Param(name, "", value)
        self._pieces, self._there = [], False
        self._state = _NAME
