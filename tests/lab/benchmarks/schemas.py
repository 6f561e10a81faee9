"""The worst bodies of each schema: in each, one field has as many small members as fit.

They are derived from what reads them, the structs of JSON, so that a new field has its bodies by itself. A body is a
function that makes it: some have 64 MiB, and most programs take them singly.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import inspect

Body = Callable[[], bytes]


def json_bodies(struct: Any, size: int) -> Iterator[tuple[str, Body]]:
    """Yield documents of a struct, of about `size` bytes each: what is filled with what, and the document."""
    kind = inspect.type_info(struct)
    yield from _filled(kind, size, "")
    opened = least(kind)[:-1] + b","
    yield "unknown members", lambda: opened + many(b'"x":1,', b'"x":1', size) + b"}"
    yield "an unknown member", lambda: opened + b'"x":[' + many(b"[],", b"[]", size) + b"]}"
    yield "white space", lambda: b" " * size + opened[:-1] + b"}"
    yield "brackets", lambda: b"[" * size


def _filled(kind: inspect.Type, size: int, path: str) -> Iterator[tuple[str, Body]]:
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from _filled(each, size, path)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            for name, value in _filled(field.type, size, f"{path}.{field.encode_name}"):
                yield name, made(partial(least, kind, field.encode_name), value)
    elif isinstance(kind, inspect.ListType):
        yield f"{path}: many", partial(many_of, least(kind.item_type), size)
        for name, value in _filled(kind.item_type, size, f"{path}[]"):
            yield name, made(b"[%b]".__mod__, value)
    elif isinstance(kind, inspect.DictType):
        one = least(kind.value_type)
        yield f"{path}: one name", lambda: b"{" + many(b'"a":' + one + b",", b'"a":' + one, size) + b"}"
        yield f"{path}: many names", lambda: b"{" + _names(one, size) + b"}"
    elif isinstance(kind, inspect.StrType):
        yield f"{path}: escapes", lambda: b'"' + many(rb"\"", b"", size) + b'"'
        yield f"{path}: a long text", lambda: b'"' + b"x" * size + b'"'
    elif isinstance(kind, inspect.RawType):
        for what, one in (("numbers", b"1"), ("lists", b"[1]"), ("texts", b'""'), ("objects", b"{}")):
            yield f"{path}: {what}", partial(many_of, one, size)


def made(make: Callable[[bytes], bytes], inner: Body) -> Body:
    """Return a body that is made of another one."""
    return lambda: make(inner())


def many_of(one: bytes, size: int) -> bytes:
    """Return a list of about `size` bytes, whose elements are all `one`."""
    return b"[" + many(one + b",", one, size) + b"]"


def _names(value: bytes, size: int) -> bytes:
    return b",".join(b'"%x":%b' % (each, value) for each in range(size // (9 + len(value))))


def least(kind: inspect.Type, name: str = "", value: bytes = b"") -> bytes:
    """Return the shortest value of a type; `name` and `value` are a member that a struct has besides."""
    match kind:
        case inspect.UnionType():
            return min(map(least, kind.types), key=len)
        case inspect.StructType():
            values = {each.encode_name: least(each.type) for each in kind.fields if each.required}
            values |= {name: value} if name else {}
            return b"{" + b",".join(b'"%b":%b' % (key.encode(), each) for key, each in values.items()) + b"}"
        case inspect.ListType():
            return b"[]"
        case inspect.DictType():
            return b"{}"
        case inspect.StrType():
            return b'"a"'
        case inspect.NoneType():
            return b"null"
        case inspect.BoolType():
            return b"true"
    return b"1"


def many(one: bytes, last: bytes, size: int) -> bytes:
    """Return about `size` bytes of `one`, again and again, and then `last`."""
    return one * (size // len(one)) + last
