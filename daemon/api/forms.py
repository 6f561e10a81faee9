"""What a request's body becomes: the named parameters that a handler sees.

    multipart/form-data                   one parameter for each part
    application/x-www-form-urlencoded     one for each field
    anything else                         one, `body`

The rules are TorchServe's (0.12, HttpUtils and Netty's post decoder), so that the same `curl`
gives a handler the same `data`. Whether a value is decoded (JSON, text) is decided in the worker,
by its content type.
"""

from functools import lru_cache
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from daemon.arena import Payload, Stored
from daemon.errors import BadRequest
from daemon.job import Param

_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
FILE_TYPE = "application/octet-stream"  # of a file part that does not say


def parse_body(content_type: str, body: Payload) -> list[Param]:
    """Split a body by its content type; the parts of one in the arena stay there.

    Raises:
        BadRequest: a form that is not one.
    """
    mime_type = _known_kind(content_type) if len(content_type) <= _SHORT else _kind(content_type)
    if mime_type is not None:
        return [Param("body", mime_type, body)]
    kind, options = parse_options_header(content_type)
    if kind == b"multipart/form-data" and options.get(b"boundary"):
        return _last_of_each(_multipart(options[b"boundary"], body))
    if kind == b"application/x-www-form-urlencoded":
        return _last_of_each(_urlencoded(bytes(body)))
    return [Param("body", _mime_type(content_type), body)]


def _kind(content_type: str) -> str | None:
    """The type of a body that is one parameter; None if it may be a form."""
    return None if content_type.lstrip().lower().startswith(_FORMS) else _mime_type(content_type)


_SHORT = 128  # characters; what clients choose is not remembered if it is longer
_known_kind = lru_cache(256)(_kind)


def _mime_type(content_type: str) -> str:
    """Without the charset and other parameters, which TorchServe does not hand to a handler either."""
    return content_type.partition(";")[0].strip()


def _last_of_each(params: list[Param]) -> list[Param]:
    return list({param.name: param for param in params}.values())


def _urlencoded(body: bytes) -> list[Param]:
    params = []
    for pair in body.split(b"&"):
        name, equals, value = pair.partition(b"=")
        if not equals:
            continue  # TorchServe drops what has no `=`
        if not name:
            raise BadRequest(f"The form has a field without a name: `{pair[:100].decode('latin-1')}`.")
        text = _unquote(name).decode("utf-8", "replace")
        params.append(Param(text, "", _unquote(value)))
    return params


def _unquote(text: bytes) -> bytes:
    for rest in text.split(b"%")[1:]:
        if len(rest) < 2 or not all(chr(digit) in "0123456789abcdefABCDEF" for digit in rest[:2]):
            raise BadRequest(f"The form has a broken escape: `%{rest[:2].decode('latin-1')}`.")
    return unquote_to_bytes(text.replace(b"+", b" "))


class _Parts:
    """Collects the parts of a multipart body from the parser's callbacks."""

    def __init__(self, body: Payload) -> None:
        self.params: list[Param] = []
        self.ended = False
        self._body = body
        self._headers: dict[bytes, bytes] = {}
        self._name = self._value = b""
        self._data: list[tuple[int, int]] = []

    def part_begin(self) -> None:
        self._headers, self._data = {}, []

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def part_data(self, data: bytes, start: int, end: int) -> None:  # noqa: ARG002 - all was written at once
        self._data.append((start, end))

    def part_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name")
        if not name:
            raise BadRequest("A part of the multipart body has no name.")
        is_file = b"filename" in options
        kind = self._headers.get(b"content-type", FILE_TYPE.encode()) if is_file else b""  # a plain part is bytes
        self.params.append(Param(name.decode("utf-8", "replace"), _mime_type(kind.decode("latin-1")), self._content()))

    def _content(self) -> Payload:
        body, data = self._body, self._data
        if isinstance(body, Stored):
            start, end = (data[0][0], data[-1][1]) if data else (0, 0)
            if sum(stop - begin for begin, stop in data) == end - start:  # one piece, however it was told
                return body.part(start, end)
            body = bytes(body)
        return b"".join([body[start:end] for start, end in data])

    def end(self) -> None:
        self.ended = True


def _multipart(boundary: bytes, body: Payload) -> list[Param]:
    parts = _Parts(body)
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": parts.part_begin,
                "on_header_field": parts.header_field,
                "on_header_value": parts.header_value,
                "on_header_end": parts.header_end,
                "on_part_data": parts.part_data,
                "on_part_end": parts.part_end,
                "on_end": parts.end,
            },
        )
        parser.write(bytes(body))
        parser.finalize()
    except FormParserError as error:
        raise BadRequest(f"The multipart body is broken: {error}") from None
    if not parts.ended:
        raise BadRequest("The multipart body is cut short: its last boundary is missing.")
    return parts.params
