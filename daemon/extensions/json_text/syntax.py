"""Check that large JSON is JSON, in windows that end at a comma.

Each window is completed to a document of its own: the lists and objects that are open at its start are opened before
it, and those that are open at its end are closed after it. msgspec, in C, checks that document.
"""

import re
from typing import Final

import msgspec

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps

MOST_DEPTH: Final = 512  # lists and objects in each other; msgspec's own limit is that of Python's recursion
_UP_TO_COMMA = re.compile(rb'(?:(?:[^",]++|"(?:[^"\\]++|\\.)*+")*+,)++', re.DOTALL)
STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
# The second half of a character outside the basic plane follows the first, and stands nowhere else.
_ESCAPES = re.compile(
    rb'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'
    rb"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4})*+"
)
WHOLE: Final = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)  # what ends outside a string
OTHERS: Final = bytes(each for each in range(256) if each not in b"[]{}")
WINDOW: Final = 16 * 1024  # bytes at a time: at most 2.5 ms, of nothing but empty texts (2-core Xeon VM)
_FEW: Final = 16  # levels of lists that are taken out of a window together
_LONGEST: Final = 4 * WINDOW  # bytes without a comma, but in strings
_QUOTE, _LIST, _LIST_END, _OBJECT, _OBJECT_END = b'"[]{}'
_decode = msgspec.json.Decoder(msgspec.Raw).decode


def check_syntax(data: memoryview) -> Steps[None]:
    """Check that a text is one value in JSON.

    Raises:
        BadRequest: it is not; or its lists and objects are nested deeper than `MOST_DEPTH`, or very much stands in one
            place without a comma, such as white space.
    """
    if len(data) <= WINDOW:
        _decoded(data, len(data))
        return
    opened = b""  # brackets, at the end of what was checked
    rest = b""  # what was read and not checked; long strings are left out
    at, size = 0, len(data)
    while at < size:
        window = bytes(data[at : at + WINDOW])
        if b'"' in window:
            whole = WHOLE.match(window)
            assert whole is not None
            window = whole.group()
        if not window:
            at = yield from _long_string(data, at)
            rest += b'""'
        at += len(window)
        rest += window
        if at >= size:
            break
        if b'"' in rest:
            found = _UP_TO_COMMA.match(rest)
            cut = -1 if found is None else found.end() - 1
        else:
            cut = rest.rfind(b",")
        if cut >= 0:
            opened = _checked(opened, rest[:cut], at)
            rest = rest[cut + 1 :]
        elif len(rest) > _LONGEST:
            raise no_json(f"{_LONGEST} bytes before byte {at} have no comma")
        yield
    _decoded(_before(opened) + rest, at)


def _checked(opened: bytes, text: bytes, at: int) -> bytes:
    """Check what stands before a comma; return the brackets that are open there."""
    if text.rstrip(b" \t\r\n")[-1:] in (b"[", b"{"):
        raise no_json(f"a comma follows a bracket before byte {at}")
    now = bytearray(opened)
    outside = STRING.sub(b"", text) if b'"' in text else text
    brackets = outside.translate(None, OTHERS)
    for _ in range(_FEW):
        fewer = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(fewer) == len(brackets):
            break
        brackets = fewer
    for each in brackets:
        if each in (_LIST, _OBJECT):
            now.append(each)
            if len(now) > MOST_DEPTH:
                raise no_json(f"more than {MOST_DEPTH} lists and objects are in each other")
        elif not now or now.pop() != (_LIST if each == _LIST_END else _OBJECT):
            raise no_json(f"a bracket before byte {at} has no other")
    if not now:
        raise no_json(f"something follows its end, before byte {at}")
    ends = bytes(_LIST_END if each == _LIST else _OBJECT_END for each in reversed(now))
    _decoded(_before(opened) + text + ends, at)
    return bytes(now)


def _before(opened: bytes) -> bytes:
    """Return the beginning of a document in which these brackets are open, after a comma."""
    if not opened:
        return b""
    around = b"".join([b"[" if each == _LIST else b'{"":' for each in opened[:-1]])
    return around + (b"[0," if opened[-1] == _LIST else b'{"":0,')


def _decoded(text: bytes | memoryview, at: int) -> None:
    try:
        _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise no_json(f"{error}, in the {len(text)} bytes before byte {at}") from None


def _long_string(data: memoryview, at: int) -> Steps[int]:
    """Return where a string ends; check its escapes."""
    at += 1
    while True:
        found = _ESCAPES.match(data, at, at + WINDOW)
        assert found is not None
        if found.end() < len(data) and data[found.end()] == _QUOTE:
            return found.end() + 1
        if found.end() == at:
            raise no_json(f"a string has no end, or a broken escape at byte {at}")
        at = found.end()
        yield


def no_json(why: str) -> BadRequest:
    return BadRequest(f"The body is not JSON: {why}.")
