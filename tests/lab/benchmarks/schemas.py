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
    opened = _least(kind)[:-1] + b","
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
                yield name, made(partial(_least, kind, field.encode_name), value)
    elif isinstance(kind, inspect.ListType):
        yield f"{path}: many", partial(_list, _least(kind.item_type), size)
        for name, value in _filled(kind.item_type, size, f"{path}[]"):
            yield name, made(b"[%b]".__mod__, value)
    elif isinstance(kind, inspect.DictType):
        least = _least(kind.value_type)
        yield f"{path}: one name", lambda: b"{" + many(b'"a":' + least + b",", b'"a":' + least, size) + b"}"
        yield f"{path}: many names", lambda: b"{" + _names(least, size) + b"}"
    elif isinstance(kind, inspect.StrType):
        yield f"{path}: escapes", lambda: b'"' + many(rb"\"", b"", size) + b'"'
        yield f"{path}: a long text", lambda: b'"' + b"x" * size + b'"'
    elif isinstance(kind, inspect.RawType):
        for what, one in (("numbers", b"1"), ("lists", b"[1]"), ("texts", b'""'), ("objects", b"{}")):
            yield f"{path}: {what}", partial(_list, one, size)


def made(make: Callable[[bytes], bytes], inner: Body) -> Body:
    """Return a body that is made of another one."""
    return lambda: make(inner())


def _list(one: bytes, size: int) -> bytes:
    return b"[" + many(one + b",", one, size) + b"]"


def _names(value: bytes, size: int) -> bytes:
    return b",".join(b'"%x":%b' % (each, value) for each in range(size // (9 + len(value))))


def _least(kind: inspect.Type, name: str = "", value: bytes = b"") -> bytes:
    """Return the shortest value of a type; `name` and `value` are a member that a struct has besides."""
    match kind:
        case inspect.UnionType():
            return min(map(_least, kind.types), key=len)
        case inspect.StructType():
            values = {each.encode_name: _least(each.type) for each in kind.fields if each.required}
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


def openai_bodies(message: Any, part: Any, size: int) -> Iterator[tuple[str, Body]]:
    """Yield requests of OpenAI's API; `message` and `part` are the structs of a message, and of a part of one."""
    prompt = b'{"model":"sized","prompt":%b}'.__mod__
    yield "prompt: many", made(prompt, partial(_list, b'""', size))
    yield "prompt: escapes", made(prompt, lambda: b'"' + many(rb"\"", b"", size) + b'"')
    yield "prompt: a long text", made(prompt, lambda: b'"' + "\u20ac".encode() * (size // 3) + b'"')
    yield "members", lambda: b'{"model":"sized",' + many(b'"a":1,', b'"prompt":""', size) + b"}"
    messages = b'{"model":"sized","messages":%b}'.__mod__
    yield "messages: many", made(messages, partial(_list, _least(inspect.type_info(message)), size))
    for name, value in json_bodies(message, size):
        yield f"message {name}", made(b'{"model":"sized","messages":[%b]}'.__mod__, value)
    for name, value in json_bodies(part, size):
        content = b'{"model":"sized","messages":[{"role":"user","content":[%b]}]}'.__mod__
        yield f"part {name}", made(content, value)
