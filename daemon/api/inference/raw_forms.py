"""Urlencoded bodies for a model whose one input can be typed: text, JSON, a list of numbers.

`curl -d 'a text'` sends application/x-www-form-urlencoded, whatever the text is. A body without a field named after
the input is therefore no form for such a model, but the input itself: one parameter `body`, without a content type,
so that the worker decodes it as declared.

    text=A+quick+fox       the field `text` of the form
    A quick fox: 5 = 100%  the whole body; as a form, it would be a broken escape
    [1, 2, 3]              the whole body; where JSON is declared, also if `&NAME=` occurs in a string

Large bodies are searched in slices; a form in one is then parsed in slices, too.
"""

from typing import Final
from urllib.parse import quote

from tsctl.daemon.api.inference.urlencoded import SLICE, Urlencoded, read_fields
from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.job import Param
from tsctl.daemon.http.messages import Request
from tsctl.handlers.wire import Input

WINDOW: Final = 256 * 1024  # bytes searched at a time: at most 0.8 ms, whatever they are (2-core Xeon VM)
_TYPE = "application/x-www-form-urlencoded"
_JSON_KINDS = ("json", "array", "tensor")  # arrays and tensors are written as lists
_JSON_STARTS = (b"{", b"[", b'"')
_START: Final = 64  # bytes, in which JSON may begin with white space


def is_urlencoded(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == _TYPE


def take_as_json(request: Request) -> None:
    """Note that a body is JSON where it is said to be a form, as `curl -d` says of any, and begins with an object."""
    if is_urlencoded(request.content_type) and _first(request.body, _START).lstrip().startswith(b"{"):
        request.kind = "application/json"


def read_raw_form(body: Payload, wanted: Input) -> "list[Param] | RawForm":
    """Read a urlencoded body; return a form to be read on if the first slice was not all of the body.

    Args:
        wanted: the model's one input.

    Raises:
        BadRequest: the body has the input's field, and is malformed or exceeds a limit.
    """
    if wanted.kind in _JSON_KINDS and _first(body, _START).lstrip().startswith(_JSON_STARTS):
        return [Param("body", "", body)]
    if isinstance(body, Lease) or len(body) > SLICE:
        return RawForm(body, wanted.name)
    if _has_field(body, _names(wanted.name), at_start=True):
        return read_fields(body)
    return [Param("body", "", body)]


class RawForm:
    """A large body: searched for the field, then either parsed as a form or left whole.

    Attributes:
        params: the parameters; complete when `advance` has returned True.
    """

    def __init__(self, body: Payload, name: str) -> None:
        self._body = body
        self._names = _names(name)
        self._at = 0
        self._form: Urlencoded | None = None

    @property
    def params(self) -> list[Param]:
        return [Param("body", "", self._body)] if self._form is None else self._form.params

    def advance(self) -> bool:
        """Search or parse one slice; return whether that slice was the last.

        Raises:
            BadRequest: the form is malformed or exceeds a limit.
        """
        if self._form is not None:
            return self._form.advance()
        start, size = self._at, len(self._body)
        longest = max(map(len, self._names)) + 1
        if _has_field(_part(self._body, start, min(size, start + WINDOW + longest)), self._names, at_start=not start):
            self._form = Urlencoded(self._body)
            return False
        self._at = start + WINDOW
        return self._at >= size


def _names(name: str) -> tuple[bytes, ...]:
    """Return the beginnings of the field: its name as it is, and percent-encoded."""
    return tuple({name.encode() + b"=", quote(name, safe="").encode() + b"="})


def _has_field(text: bytes, names: tuple[bytes, ...], *, at_start: bool) -> bool:
    return (at_start and text.startswith(names)) or any(b"&" + name in text for name in names)


def _first(body: Payload, count: int) -> bytes:
    return _part(body, 0, min(len(body), count))


def _part(body: Payload, start: int, stop: int) -> bytes:
    return bytes(body.part(start, stop).view) if isinstance(body, Lease) else body[start:stop]
