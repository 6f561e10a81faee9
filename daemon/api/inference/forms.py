"""Parsing of request bodies into the named parameters that a handler receives.

    multipart/form-data                   one parameter for each part      multipart.py
    application/x-www-form-urlencoded     one parameter for each field     urlencoded.py
    the same, with the bytes of a file    one parameter, `body`
    anything else                         one parameter, `body`

The rules are TorchServe's (0.12, HttpUtils and Netty's post decoder), so that the same `curl`
gives a handler the same `data`. The worker decides by content type whether to decode a value (JSON, text).

Forms are parsed in slices, so that a large form does not block the event loop: a slice takes at most 2 ms
(`python -m tests.lab bounds`). Most forms are one slice.
"""

from functools import lru_cache
from typing import Final

from tsctl.daemon.api.inference.multipart import FILE_TYPE, Multipart, parse_options
from tsctl.daemon.api.inference.urlencoded import SLICE, Urlencoded, is_file, read_fields
from tsctl.daemon.core.arena import Lease, Payload
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param

__all__ = ["FILE_TYPE", "Form", "parse_body", "read_body"]

_new: Final = tuple.__new__  # a Param without the call of a Python function, which costs 0.4 µs
Form = Multipart | Urlencoded
MOST_TYPE: Final = 1024  # characters of a form's content type
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")


def parse_body(content_type: str, body: Payload) -> list[Param]:
    """Parse a whole body by its content type, without a limit of time; parts of a body in the arena stay there.

    Raises:
        BadRequest: the form is malformed or exceeds a limit.
    """
    read = read_body(content_type, body)
    if isinstance(read, list):
        return read
    while not read.advance():
        pass
    return read.params


def read_body(content_type: str, body: Payload) -> list[Param] | Form:
    """Parse a body by its content type; return a form to be read on if the first slice was not all of the body.

    Raises:
        BadRequest: the form is malformed or exceeds a limit.
    """
    mime_type = _known_kind(content_type) if len(content_type) <= _SHORT else _kind(content_type)
    if mime_type is not None:
        return [_new(Param, ("body", mime_type, body))]
    if len(content_type) > MOST_TYPE:
        raise BadRequest(
            f"The form's Content-Type is broken: it has {len(content_type)} characters, at most {MOST_TYPE} are read."
        )
    kind, options = parse_options(content_type)
    form: Form
    if kind == "multipart/form-data" and options.get("boundary"):
        form = Multipart(options["boundary"].encode("latin-1"), body)
    elif kind == "application/x-www-form-urlencoded" and is_file(body):
        return [Param("body", "", body)]
    elif kind == "application/x-www-form-urlencoded":
        if not isinstance(body, Lease) and len(body) <= SLICE:
            return read_fields(body)
        form = Urlencoded(body)
    else:
        return [Param("body", _mime_type(content_type), body)]
    return form.params if form.advance() else form


def _kind(content_type: str) -> str | None:
    """Return the MIME type of a body that is one parameter; None if the body may be a form."""
    return None if content_type.lstrip().lower().startswith(_FORMS) else _mime_type(content_type)


_SHORT: Final = 128  # characters; longer content types, which clients choose, are not cached
_known_kind = lru_cache(256)(_kind)


def _mime_type(content_type: str) -> str:
    """Return a content type without charset and other parameters, which TorchServe does not pass to handlers either."""
    return content_type.partition(";")[0].strip()
