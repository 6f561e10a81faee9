"""Texts and values of a handler or a client, as the encoders of frames take them: no function here raises.

A text may hold a lone surrogate, which UTF-8 cannot encode: of JSON's `"\\ud83c"`, or of a file's name.
An object of a handler's class may raise in each of its methods, and msgspec takes only the built-in classes themselves.
"""

from typing import Any

import msgspec

_DEEPEST = 100  # levels of lists and dicts; msgspec and `repr` end at about a thousand
_class_name = type.__dict__["__name__"].__get__  # a metaclass may define another `__name__`
_INTEGERS = range(-(2**63), 2**64)  # that MessagePack has
_encoder = msgspec.msgpack.Encoder()
# Raised by msgspec for a lone surrogate, an object of another class, a large integer, and deep nesting.
UNENCODABLE = (ValueError, TypeError, OverflowError, RecursionError)


def text_of(value: object) -> str:
    """Return `str(value)`; if that fails, the name of its class."""
    try:
        return str.__str__(str(value))  # of the class itself: `__str__` may return one of a class of the handler's
    except BaseException:  # noqa: BLE001 - user code may raise anything, and asks for recursion and memory without end
        return f"<unprintable {class_of(value)} object>"


def class_of(value: object) -> str:
    """Return the name of a value's class."""
    name: str = _class_name(type(value))
    return name


def sendable(value: object) -> str:
    """Return the text of a value as a frame can hold it, with `?` for each lone surrogate."""
    text = text_of(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def encodable(value: Any, depth: int = 0) -> Any:
    """Return a value of built-in classes alone that msgspec can encode: the same one, as far as that is possible."""
    kind = type(value)
    if value is None or kind in (bool, float, bytes, bytearray, memoryview):
        return value
    if issubclass(kind, str) or depth > _DEEPEST:
        return sendable(value)
    if issubclass(kind, int):
        return _integer(int.__index__(value))
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, (bytes, bytearray)):
        return bytes(memoryview(value))
    if issubclass(kind, msgspec.Struct):
        fields = [encodable(getattr(value, name), depth + 1) for name in value.__struct_fields__]
        return kind(*fields)
    if kind in (list, tuple):
        return [encodable(each, depth + 1) for each in value]
    if kind is dict:
        return {sendable(key): encodable(each, depth + 1) for key, each in value.items()}
    return sendable(value)


def packed(message: Any) -> bytes:
    """Return a message as MessagePack, whatever texts are in it."""
    try:
        return _encoder.encode(message)
    except UNENCODABLE:
        return _encoder.encode(encodable(message))


def _integer(value: int) -> int | float | str:
    if value in _INTEGERS:
        return value
    try:
        return float(value)
    except OverflowError:
        return sendable(value)
