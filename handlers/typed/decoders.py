"""From a part of a request to the value of a parameter, by the kind of input."""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.requests.pixels import Pixels
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.typed.annotations import FILES, Target, is_pydantic
from tsctl.handlers.typed.body import JSON, Part, member_of
from tsctl.handlers.typed.signature import Argument

Decode = Callable[[Part], Any]
_MOST_REASONS = 5
# Raised by code of a hint's type, such as a validator, for a value that it refuses. Anything else, such as a NameError,
# is a bug of that code, and not the client's fault.
_REFUSALS = (ValueError, TypeError, AssertionError, LookupError, ArithmeticError, RecursionError)


class _NotJson(UnreadablePayload):
    """A body is no JSON: it has no members either, and is not parsed again to look for one."""


def decoder_of(argument: Argument, pixels: Pixels) -> Decode:
    """Return the decoder of a parameter; it raises UnreadablePayload with the parameter's name and the reason.

    A bug of the hint's type is raised as it is.

    Args:
        pixels: of the images, and samples of the sounds, that are decoded together; a decoder of these also raises
            TooManyPixels.
    """
    decode = _decoder(argument.target, argument.name, pixels)
    if argument.target.items is not None:
        decode = _several(argument, argument.target.items, pixels, decode)
    optional, own = argument.target.optional, argument.target.kind in ("json", "text")

    def decode_part(part: Part) -> Any:
        if optional and part.parsed and part.value is None:
            return None
        try:
            return decode(part)
        except UnreadablePayload as error:
            reason = message_of(error)
            way = f". {argument.single_number}" if "got `array`" in reason and argument.single_number else ""
            raise UnreadablePayload(f"`{argument.name}`: {reason}{way}") from error
        except _REFUSALS as error:
            if not own:
                raise
            raise UnreadablePayload(f"`{argument.name}`: {type(error).__name__}: {message_of(error)}") from error

    return decode_part


def _decoder(target: Target, name: str, pixels: Pixels) -> Decode:
    """Return the decoder of one value; what it needs is imported for handlers that have such a value."""
    kind, dtype = target.type, target.dtype
    match target.kind:
        case "text":
            return _text(None if kind is str else kind)
        case "json":
            return _json(kind, name)
        case "image":
            from tsctl.handlers.requests.images import decode_image

            return lambda part: decode_image(_file_of(part), pixels.most, admit=pixels.admit)
        case "audio":
            from tsctl.handlers.requests.audio import decode_audio

            return lambda part: decode_audio(_file_of(part), pixels.admit)
        case "array":
            from tsctl.handlers.typed.arrays import array_of, array_of_elements

            return lambda part: (
                array_of(part.value, dtype)
                if part.tensor is None
                else array_of_elements(part.tensor, part.value, dtype)
            )
        case "tensor":
            from tsctl.handlers.typed.arrays import tensor_of, tensor_of_elements

            return lambda part: (
                tensor_of(part.value) if part.tensor is None else tensor_of_elements(part.tensor, part.value)
            )
        case "bytes":
            return lambda part: kind(_bytes_of(part))


def _several(argument: Argument, items: Target, pixels: Pixels, whole: Decode) -> Decode:
    """Return the decoder of a list: of the parts of one name, or of what one part holds.

    Args:
        whole: decodes a part that is a list in JSON; of images and arrays, one of them. A list of numbers is one array.
    """
    one = _decoder(items, argument.name, pixels)
    files, binary = items.kind in FILES, items.kind in ("image", "audio")

    def decode_items(parts: list[Part]) -> list[Any]:
        values = []
        for part in parts:
            try:
                values.append(one(part))
            except UnreadablePayload as error:
                raise UnreadablePayload(f"item {len(values) + 1}: {message_of(error)}") from error
        return values

    def decode(part: Part) -> Any:
        if part.all is not None:
            return decode_items(part.all)
        if not files:
            return whole(part)
        listed = part.value if part.parsed else _list_of(part)
        if isinstance(listed, list) and (binary or not listed or isinstance(listed[0], list)):  # else one array
            return decode_items([Part(JSON, each, parsed=True) for each in listed])
        return decode_items([part])

    return decode


def _list_of(part: Part) -> Any:
    """Return the JSON list that a body begins like, which no image, sound or array's file does; None for another."""
    if part.tensor is not None or not bytes(part.value[:64]).lstrip().startswith(b"["):
        return None
    try:
        return msgspec.json.decode(part.value)
    except (ValueError, RecursionError) as error:
        raise UnreadablePayload(f"not JSON: {message_of(error)}") from None


def _text(kind: Any) -> Decode:
    """Return the decoder of a text; `kind` is a type that it is converted to, None for a plain one."""

    def decode(part: Part) -> Any:
        text = part.value if part.parsed else _text_of(part)
        if not isinstance(text, str):
            raise UnreadablePayload(f"expected a text, got {type(text).__name__}")
        return text if kind is None else _converted(text, kind)

    return decode


def _text_of(part: Part) -> Any:
    if part.content_type == JSON:  # a JSON text; any other JSON is the text
        try:
            value = msgspec.json.decode(part.value)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, str):
            return value
    try:
        return str(part.value, "utf-8")
    except UnicodeDecodeError as error:
        raise UnreadablePayload(
            f"not a text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}"
        ) from None


def _json(kind: Any, name: str) -> Decode:
    if is_pydantic(kind):
        return _or_member(_pydantic(kind), name, _fields(kind) if hasattr(kind, "model_fields") else None)
    decoder = msgspec.json.Decoder(kind)

    def decode(part: Part) -> Any:
        if part.parsed:
            return _converted(part.value, kind)
        try:
            return decoder.decode(part.value)
        except msgspec.ValidationError as error:
            raise UnreadablePayload(message_of(error)) from None
        except (ValueError, RecursionError) as error:
            raise _NotJson(f"not JSON: {message_of(error)}") from None

    return _or_member(decode, name, _fields(kind))


def _or_member(decode: Decode, name: str, fields: Mapping[str, bool] | None) -> Decode:
    """Return a decoder of the whole, or of its member of the parameter's name, where the whole cannot be meant.

    Args:
        fields: of a record, as `_fields`. One that has a field of this name is never taken for such a member.
    """
    never = fields is not None and name in fields
    takes_any = fields is not None and not never and not any(fields.values())  # an object with this member alone, too

    def decode_either(part: Part) -> Any:
        if takes_any and (inside := member_of(part, name)) is not None:
            return decode(inside)
        try:
            return decode(part)
        except _NotJson:
            raise
        except UnreadablePayload:
            inside = None if never else member_of(part, name)
            if inside is None:
                raise
        return decode(inside)

    return decode_either


def _fields(kind: Any) -> Mapping[str, bool] | None:
    """Return the fields of a record, and whether each is required; None for any other type."""
    fields = getattr(kind, "model_fields", None)  # pydantic
    if fields is not None:
        return {name: each.is_required() for name, each in fields.items()}
    info = msgspec.inspect.type_info(kind)
    for each in info.types if isinstance(info, msgspec.inspect.UnionType) else (info,):
        if isinstance(each, (msgspec.inspect.StructType, msgspec.inspect.DataclassType, msgspec.inspect.TypedDictType)):
            return {field.encode_name: field.required for field in each.fields}
    return None


def _pydantic(kind: Any) -> Decode:
    def decode(part: Part) -> Any:
        try:
            return kind.model_validate(part.value) if part.parsed else kind.model_validate_json(bytes(part.value))
        except (ValueError, RecursionError) as error:  # pydantic's ValidationError is a ValueError
            raise UnreadablePayload(_in_one_line(error)) from None

    return decode


def _in_one_line(error: Exception) -> str:
    """Return the reasons of a pydantic ValidationError as msgspec writes them; the text of any other error."""
    listed = getattr(error, "errors", None)
    if not callable(listed):
        return message_of(error)
    reasons = []
    for each in listed()[:_MOST_REASONS]:
        at = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in each.get("loc", ()))
        reasons.append(f"{each.get('msg')}{f' - at `${at}`' if at else ''}")
    return "; ".join(reasons)


def _converted(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UnreadablePayload(message_of(error)) from None


def _file_of(part: Part) -> bytes:
    """Return the bytes of a file: as they came, or from base64 in JSON or a text, which no image and no sound is."""
    if not part.parsed and part.tensor is None:
        if bytes(part.value[:1]) == b'"':
            try:
                return _from_base64(msgspec.json.decode(part.value))
            except msgspec.DecodeError as error:
                raise UnreadablePayload(f"not JSON: {message_of(error)}") from None
        if part.content_type.startswith("text/") and (text := bytes(part.value)).isascii():
            return _from_base64(text.decode())
    return _bytes_of(part)


def _bytes_of(part: Part) -> bytes:
    """Return a part's bytes; within JSON they are base64."""
    if not part.parsed:
        return bytes(part.value)
    return _from_base64(part.value)


def _from_base64(text: Any) -> bytes:
    if not isinstance(text, str):
        raise UnreadablePayload(f"expected a text in base64, got {type(text).__name__}")
    try:
        return base64.b64decode("".join(text.split()), validate=True)  # tools that write base64 break its lines
    except ValueError as error:
        raise UnreadablePayload(f"not base64: {error}") from None
