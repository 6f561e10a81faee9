"""Read long texts in JSON, a window at a time."""

import re

import msgspec

from tsctl.daemon.core.arena import Gathered
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.extensions.json_text.syntax import WINDOW, no_json

# Whole characters, and whole escapes; the two halves of a character outside the basic plane stay together.
_WHOLE = re.compile(
    rb"(?:[^\\\x80-\xff]++|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])++",
    re.DOTALL,
)
_LONGEST = 16  # bytes of a character


def gather_text(written: memoryview, into: Gathered) -> Steps[None]:
    """Add a text, in UTF-8, to what is gathered.

    Args:
        written: the text in JSON, whose escapes are valid.

    Raises:
        BadRequest: the value is no text.
    """
    if len(written) < 2 or written[0] != ord('"'):
        raise no_json("a text is expected, and something else is there")
    at, end = 1, len(written) - 1
    while at < end:
        whole = _WHOLE.match(written, at, min(at + WINDOW, end))
        stop = at if whole is None else whole.end()
        if end - at <= WINDOW and end - stop <= _LONGEST:
            stop = end
        elif stop == at:  # no character: msgspec says so
            stop = min(at + _LONGEST, end)
        into.add_piece(_decoded(b'"' + bytes(written[at:stop]) + b'"'))
        at = stop
        if at < end:
            yield


def _decoded(written: bytes) -> bytes:
    try:
        return msgspec.json.decode(written, type=str).encode()
    except (msgspec.DecodeError, UnicodeError) as error:
        raise no_json(str(error)) from None
