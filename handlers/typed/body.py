"""From a request to one part for each parameter.

one parameter        the whole body, or the form's part of its name
several parameters   the parts of a form, or the members of a JSON object, named after them
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, final

import msgspec

from tsctl.handlers import wire
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import ElementHeads, TensorHead
from tsctl.handlers.typed.signature import Argument

_WHOLE = ("data", "body")  # the names that the daemon and TorchServe's clients give to a body without a form
JSON = "application/json"


@final
class Part:
    """The value for one parameter.

    Attributes:
        content_type: without parameters, in lower case.
        value: bytes as received, or a parsed JSON value.
        parsed: `value` is a member of a JSON object.
        tensor: `value` is the elements of this tensor; None for any other part.
    """

    __slots__ = ("content_type", "parsed", "tensor", "value")

    def __init__(self, content_type: str, value: Any, parsed: bool = False, tensor: TensorHead | None = None) -> None:
        self.content_type = content_type
        self.value = value
        self.parsed = parsed
        self.tensor = tensor


@final
class RequestBody:
    """A request as received: name → part."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[str, Part]) -> None:
        self.parts = parts


def read_rows(rows: Sequence[wire.Row]) -> list[RequestBody]:
    """Return the bodies of a batch, undecoded; the values are views that are valid while the batch runs."""
    return [
        RequestBody({name: Part(_mime(kind), value) for name, kind, value in row.params})
        if row.infer is None
        else _with_tensors(row)
        for row in rows
    ]


def _with_tensors(row: wire.Row) -> RequestBody:
    heads = row.infer
    assert isinstance(heads, ElementHeads)
    pairs = zip(row.params, heads.inputs, strict=True)
    return RequestBody({name: Part(_mime(kind), value, False, head) for (name, kind, value), head in pairs})


def parts_of(body: RequestBody, arguments: Sequence[Argument]) -> dict[str, Part]:
    """Return the parts of the parameters that the request fills.

    Raises:
        UnreadablePayload: a required part is missing, or there are parts of other names.
    """
    parts = body.parts
    if len(parts) == len(arguments) == 1:  # nearly always: saves 2 µs
        [(name, part)], argument = parts.items(), arguments[0].name
        if name == argument or name in _WHOLE:
            return {argument: part}
    whole = _whole(parts, _names(arguments))
    if whole is None:
        found = {each.name: parts[each.name] for each in arguments if each.name in parts}
    elif len(arguments) == 1:
        found = {arguments[0].name: whole}
    elif not len(whole.value) and not any(each.required for each in arguments):
        found = {}
    else:
        found = _members(whole, arguments)
    for each in arguments:
        if each.required and each.name not in found:
            raise UnreadablePayload(_missing(each, list(parts), len(arguments)))
    return found


def _names(arguments: Sequence[Argument]) -> list[str]:
    return [each.name for each in arguments]


def _whole(parts: Mapping[str, Part], names: Sequence[str]) -> Part | None:
    """Return the body of a request that is no form; None if all parts have names of their own."""
    for name in _WHOLE:
        if name in parts and name not in names:
            return parts[name]
    return None


def _members(whole: Part, arguments: Sequence[Argument]) -> dict[str, Part]:
    names = _names(arguments)
    expected = f"a JSON object or a form with {', '.join(f'`{name}`' for name in names)}"
    try:
        value = msgspec.json.decode(whole.value)
    except (ValueError, RecursionError) as error:
        raise UnreadablePayload(f"The request should be {expected}, and is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UnreadablePayload(f"The request should be {expected}, and is a JSON {type(value).__name__}")
    return {name: Part(JSON, value[name], parsed=True) for name in names if name in value}


def _missing(argument: Argument, names: list[str], count: int) -> str:
    has = f"it has {', '.join(f'`{name[:100]}`' for name in names[:10])}" if names else "it has none"
    way = "send the body as it is (`curl -T FILE`), or a part" if count == 1 else "send a part or a JSON member"
    return f"`{argument.name}`: the request lacks this part, {has}; {way} of that name"


@lru_cache(maxsize=32)
def _mime(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
