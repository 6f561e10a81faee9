"""Answers as Python values, and as errors."""

import codecs
import json
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from tsctl.python.errors import DeadlineExceeded, ErrorAnswer, Overloaded, UnreadableAnswer
from tsctl.python.inputs import NPY

_SHOWN = 200  # characters of an answer in a message


class ReceivedAnswer(NamedTuple):
    """An answer with its whole body; the names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        """The body by its content type: JSON → objects, text → str, `.npy` → a NumPy array, anything else → bytes.

        Raises:
            UnreadableAnswer: the header says JSON or `.npy`, and the body is not.
        """
        kind = kind_of(self.headers)
        if is_json(kind):
            try:
                return json.loads(self.body)
            except (ValueError, RecursionError) as error:
                raise UnreadableAnswer(f"the answer says {kind}, and is not: {error}; {_excerpt(self.body)}") from None
        if kind.startswith("text/"):
            return self.body.decode(charset_of(self.headers), "replace")
        if kind == NPY and find_spec("numpy") is not None:
            from tsctl.python.npy import read_npy

            return read_npy(self.body)
        return self.body


_NO_SUCH_PATH = "ResourceNotFoundException"  # `type` of the daemon's 404 for a path, not for a model


def check(answer: ReceivedAnswer, no_such_path: str = "") -> ReceivedAnswer:
    """Return an answer whose status is less than 400.

    Args:
        no_such_path: told instead of the daemon's message, where it does not know the path.

    Raises:
        DeadlineExceeded: the status is 504.
        Overloaded: the status is 503, with `Retry-After`.
        ErrorAnswer: the status is 400 or more.
    """
    if answer.status < 400:
        return answer
    message, kind = _message(answer)
    if kind == _NO_SUCH_PATH:
        message = no_such_path or message
    request_id = answer.headers.get("x-request-id", "")
    if answer.status == 504:
        raise DeadlineExceeded(message, request_id)
    after = retry_after(answer.status, answer.headers)
    error = (ErrorAnswer if after is None else Overloaded)(answer.status, message, kind, request_id, answer.body)
    if isinstance(error, Overloaded):
        error.retry_after = after or 0.0
    raise error


def retry_after(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a request may be repeated, of a 503 that has them; None otherwise.

    A proxy may send a date instead (RFC 9110, section 10.2.3).
    """
    text = headers.get("retry-after", "")
    if status != 503 or not text.isascii():
        return None
    return (float(text) if len(text) < 10 else None) if text.isdigit() else _seconds_until(text)


def _seconds_until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


class TextPieces:
    """Turns the pieces of a stream into text or bytes, by its content type; a character may lie in two pieces."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        kind = kind_of(headers)
        textual = kind.startswith("text/") or is_json(kind) or kind == "application/x-ndjson"
        self._decoder = codecs.getincrementaldecoder(charset_of(headers))("replace") if textual else None

    def decode(self, piece: bytes) -> str | bytes:
        return piece if self._decoder is None else self._decoder.decode(piece)

    def rest(self) -> str:
        """Return the rest of a text that was cut within a character."""
        return "" if self._decoder is None else self._decoder.decode(b"", final=True)


def kind_of(headers: Mapping[str, str]) -> str:
    """Return the content type without parameters, in lower case."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(kind: str) -> bool:
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def charset_of(headers: Mapping[str, str]) -> str:
    """Return the charset of a text; UTF-8 if it names none, or one that Python does not know."""
    for option in headers.get("content-type", "").split(";")[1:]:
        name, _, value = option.partition("=")
        if name.strip().lower() == "charset":
            try:
                return codecs.lookup(value.strip().strip("\"'")).name
            except (LookupError, ValueError):
                break
    return "utf-8"


def _message(answer: ReceivedAnswer) -> tuple[str, str]:
    """Return the message and kind of an error; the body's beginning where the handler wrote it."""
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and isinstance(document.get("message"), str):
        return document["message"], str(document.get("type", ""))
    return _excerpt(answer.body) or "the answer has no body", ""


def _excerpt(body: bytes) -> str:
    text = body[: 4 * _SHOWN].decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
