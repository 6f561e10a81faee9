"""Bodies (inference/forms.py): parameters or a BadRequest, the same ones in the arena and when written again.

The bytes are a content type, a line feed, and the body.
"""

import logging
from urllib.parse import quote_plus

from tests.api.inference.reference import parts_of, unescaped
from tests.lab.fuzz.targets import Target
from tsctl.daemon.api.inference.forms import MOST_TYPE, parse_body
from tsctl.daemon.api.inference.multipart import parse_options
from tsctl.daemon.api.inference.urlencoded import MOST_NAME_BYTES, is_file
from tsctl.daemon.core.arena import Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param

_ARENA = Arena(1024**2)
_OUTER = b"tsctl-fuzz-8f3a-boundary"
logging.getLogger("python_multipart").disabled = True  # it logs each broken body


def check(data: bytes) -> object:
    line, _, body = data.partition(b"\n")
    content_type = line.decode("latin-1")
    params = _parsed(content_type, body)
    _compare(content_type, body, params)
    place = _ARENA.take(len(body)) if body else None
    if place is not None:
        place.view[:] = body
        assert _parsed(content_type, place) == params
    if params is None:
        return None
    fields = [(param.name, param.value) for param in params]
    written = "&".join(f"{quote_plus(name)}={quote_plus(bytes(value))}" for name, value in fields)
    again = _parsed("application/x-www-form-urlencoded", written.encode())
    assert again == [Param(name, "", value) for name, value in fields]
    _check_multipart(params)
    return params


def _compare(content_type: str, body: bytes, params: list[Param] | None) -> None:
    """Check that our results equal the references', which accept more, but for blanks after the first boundary."""
    if params is None or len(content_type) > MOST_TYPE:
        return
    try:
        kind, options = parse_options(content_type)
    except BadRequest:
        return  # too many options, of a type that has none for us: its body is a value as it is
    if kind == "application/x-www-form-urlencoded" and is_file(body):
        assert [param.value for param in params] == [body]
    elif kind == "application/x-www-form-urlencoded":
        pairs = body.split(b"&")
        empty = [
            pair for pair in pairs if b"=" not in pair and pair and len(pairs) > 1 and len(pair) <= MOST_NAME_BYTES
        ]
        fields = [pair.partition(b"=") for pair in pairs if b"=" in pair or pair in empty]
        read = [((unescaped(name) or b"").decode("utf-8", "replace"), unescaped(value)) for name, _, value in fields]
        assert [(param.name, param.value) for param in params] == read
    elif kind == "multipart/form-data" and options.get("boundary"):
        boundary = options["boundary"].encode("latin-1")
        if not body.lstrip(b"\r\n").startswith(b"--" + boundary):  # a preamble, which the reference does not take
            body = body[body.index(b"\r\n--" + boundary) + 2 :]
        parts = parts_of(boundary, body)
        if parts is None:
            assert body.lstrip(b"\r\n").startswith((b"--%b " % boundary, b"--%b\t" % boundary))
        else:
            assert len(params) == len(parts)
            assert [param.value for param in params] == list(parts)
            assert not parts or params


def _parsed(content_type: str, body: bytes | Lease) -> list[Param] | None:
    try:
        params = parse_body(content_type, body)
    except BadRequest as error:
        assert str(error)
        return None
    return [param._replace(value=bytes(param.value)) for param in params]


def _check_multipart(params: list[Param]) -> None:
    """Check that a multipart form is read back as written."""
    said = [
        param for param in params if param.name.isascii() and param.name.isalnum() and _OUTER not in bytes(param.value)
    ]
    parts = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
        % (_OUTER, param.name.encode(), bytes(param.value))
        for param in said
    ]
    body = b"".join(parts) + b"--%b--\r\n" % _OUTER
    again = _parsed(f"multipart/form-data; boundary={_OUTER.decode()}", body)
    assert again == [Param(param.name, "", param.value) for param in said]


_MULTIPART = b"multipart/form-data; boundary=b\n"
_PART = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'
_FILE = b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n\x89\r\n'
TARGET = Target(
    check,
    [
        b"application/x-www-form-urlencoded\na=1&b=x+y%2B%ff&a=3&c",
        b"application/x-www-form-urlencoded\na=1&=2",
        b"application/x-www-form-urlencoded; charset=utf-8\nname=%C3%A9&empty=",
        _MULTIPART + _PART + _FILE + b"--b--\r\n",
        _MULTIPART + b"--b--\r\n",
        _MULTIPART + _PART,
        _MULTIPART + b"A preamble.\r\n" + _PART + b"--b--\r\n",
        b'Multipart/Form-Data; boundary="b c"\n--b c\r\nContent-Disposition: form-data; name=y\r\n\r\n\r\n--b c--',
        b"multipart/form-data\n--b--",
        b"application/json; charset=utf-8\n{}",
    ],
    [b"multipart/form-data; boundary=", b"Content-Disposition: form-data; name=", b"filename*=utf-8''", b"\r\n--b--"],
)
