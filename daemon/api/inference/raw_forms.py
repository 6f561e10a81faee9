"""Urlencoded bodies for a model that declares its inputs, where the body may be the input itself.

`curl -d 'a text'` and `curl --data-binary @FILE` send application/x-www-form-urlencoded, whatever the body is. A body
without a field named after an input is therefore no form for such a model, but one parameter `body`, which the worker
decodes as declared: JSON with its members, the one input, or an error that names the inputs.

    text=A+quick+fox       the field `text` of the form
    A quick fox: 5 = 100%  the whole body; as a form, it would be a broken escape
    {"text": "a&top=b"}    the whole body; where JSON is declared, also a list or a string
    \x89PNG…               the whole body, whatever model it is for (urlencoded.py)

Large bodies are searched in slices; a form in one is then parsed in slices, too.
"""

from typing import Final
from urllib.parse import quote

from tsctl.daemon.api.inference.urlencoded import SLICE, Urlencoded, first_bytes, is_file, part_of, read_fields
from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.job import Param
from tsctl.daemon.http.messages import Request
from tsctl.handlers.wire import Declared

WINDOW: Final = 256 * 1024  # bytes searched at a time: at most 0.8 ms, whatever they are (2-core Xeon VM)
_TYPE = "application/x-www-form-urlencoded"
_JSON_KINDS = ("json", "array", "tensor")  # arrays and tensors are written as lists
_JSON_STARTS = (b"{", b"[", b'"')
_JSON = "application/json"
_START: Final = 64  # bytes, in which JSON may begin with white space


def is_urlencoded(content_type: str) -> bool:
    return len(content_type) >= len(_TYPE) and content_type.partition(";")[0].strip().lower() == _TYPE


def take_as_json(request: Request) -> None:
    """Note that a body is JSON where it is said to be a form, as `curl -d` says of any, and begins with an object."""
    if is_urlencoded(request.content_type) and first_bytes(request.body, _START).lstrip().startswith(b"{"):
        request.kind = _JSON


def read_raw_form(body: Payload, declared: Declared) -> "list[Param] | RawForm | None":
    """Read a urlencoded body; return a form to be read on if the first slice was not all of the body.

    Return None for a body that is a form, or nothing that the model takes: an image or a sound would be known.

    Args:
        declared: by a typed or built-in handler.

    Raises:
        BadRequest: the body has the field of an input, and is malformed or exceeds a limit.
    """
    start = first_bytes(body, _START).lstrip()
    if start.startswith(_JSON_STARTS if _takes_json(declared) else b"{"):
        # Built-in handlers find JSON decoded where its type says so; for typed ones, types do not matter.
        return [Param("body", _JSON if declared.built_in else "", body)]
    if is_file(body):
        return [Param("body", "", body)]
    if all(each.kind in ("image", "audio") for each in declared.inputs):
        return None
    if declared.built_in:
        # Anything with a sign is a form, as in TorchServe, which loses a text without one.
        text = declared.inputs[0].kind == "text" and not isinstance(body, Lease) and b"=" not in body
        return [Param("body", "", body)] if text and body else None
    names = _names(declared)
    if isinstance(body, Lease) or len(body) > SLICE:
        return RawForm(body, names)
    if _has_field(body, names, at_start=True):
        return read_fields(body)
    return [Param("body", "", body)]


class RawForm:
    """A large body: searched for a field, then either parsed as a form or left whole.

    Attributes:
        params: the parameters; complete when `advance` has returned True.
    """

    def __init__(self, body: Payload, names: tuple[bytes, ...]) -> None:
        self._body = body
        self._names = names
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
        if _has_field(part_of(self._body, start, min(size, start + WINDOW + longest)), self._names, at_start=not start):
            self._form = Urlencoded(self._body)
            return False
        self._at = start + WINDOW
        return self._at >= size


def _takes_json(declared: Declared) -> bool:
    """Return whether a body that begins like a list or a string in JSON is one."""
    if declared.built_in:
        return declared.inputs[0].kind != "text"
    return len(declared.inputs) == 1 and declared.inputs[0].kind in _JSON_KINDS


def _names(declared: Declared) -> tuple[bytes, ...]:
    """Return the beginnings of fields: the names of inputs as they are, and percent-encoded."""
    names = [each.name for each in declared.inputs]
    return tuple({each + b"=" for name in names for each in (name.encode(), quote(name, safe="").encode())})


def _has_field(text: bytes, names: tuple[bytes, ...], *, at_start: bool) -> bool:
    return (at_start and text.startswith(names)) or any(b"&" + name in text for name in names)
