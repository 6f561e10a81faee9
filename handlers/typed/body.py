"""From a request to one part for each parameter.

a form                       the parts named after the parameters, or one named `data` or `body`, which is as the
                             whole body
a JSON object                its members named after the parameters; for a parameter whose values are objects, and
                             which is the only one, the object itself
any other body               the parameter that alone is required, or is the only one
parameters of the query      beside each of these, as parts of a form
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, final

import msgspec

from tsctl.handlers import wire
from tsctl.handlers.requests.excerpt import excerpt
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import ElementHeads, TensorHead
from tsctl.handlers.texts.near_names import did_you_mean
from tsctl.handlers.typed.signature import Argument

_WHOLE = ("data", "body")  # the names that the daemon and TorchServe's clients give to a body without a form
_BODY = "body"  # the daemon's
JSON = "application/json"
_OBJECT_STARTS: Final = b"{ \t\r\n"
_SHOWN: Final = 100  # characters of a name in an error
_MOST_BLANKS: Final = 64  # bytes of white space in which JSON may begin


@final
class Part:
    """The value for one parameter.

    Attributes:
        content_type: without parameters, in lower case.
        value: bytes as received, or a parsed JSON value.
        parsed: `value` is a member of a JSON object.
        tensor: `value` is the elements of this tensor; None for any other part.
        all: the parts of this name, of which this is the last; None if this is the only one.
    """

    __slots__ = ("all", "content_type", "parsed", "tensor", "value")

    def __init__(self, content_type: str, value: Any, parsed: bool = False, tensor: TensorHead | None = None) -> None:
        self.content_type = content_type
        self.value = value
        self.parsed = parsed
        self.tensor = tensor
        self.all: list[Part] | None = None


@final
class RequestBody:
    """A request as received: name → part."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[str, Part]) -> None:
        self.parts = parts


def read_rows(rows: Sequence[wire.Row]) -> list[RequestBody]:
    """Return the bodies of a batch, undecoded; the values are views that are valid while the batch runs."""
    return [_read_row(row) if row.infer is None else _with_tensors(row) for row in rows]


def _read_row(row: wire.Row) -> RequestBody:
    parts = {name: Part(_mime(kind), value) for name, kind, value in row.params}
    if len(parts) < len(row.params):
        for name, part in parts.items():
            alike = [Part(_mime(kind), value) for other, kind, value in row.params if other == name]
            if len(alike) > 1:
                part.all = alike
    return RequestBody(parts)


def _with_tensors(row: wire.Row) -> RequestBody:
    heads = row.infer
    assert isinstance(heads, ElementHeads)
    pairs = zip(row.params, heads.inputs, strict=True)
    return RequestBody({name: Part(_mime(kind), value, False, head) for (name, kind, value), head in pairs})


def parts_of(body: RequestBody, arguments: Sequence[Argument]) -> dict[str, Part]:
    """Return the parts of the parameters that the request fills.

    Raises:
        UnreadablePayload: a required part is missing, there is more than one value for a parameter, or a part or a
            member is for none.
    """
    parts = body.parts
    if len(parts) == len(arguments) == 1:  # nearly always: saves 2 µs
        [(name, part)], argument = parts.items(), arguments[0]
        taken = argument.target.objects or not _may_be_object(part) if name in _WHOLE else name == argument.name
        if taken and part.all is None:
            return {argument.name: part}
    found = {each.name: parts[each.name] for each in arguments if each.name in parts}
    taken_parts, name = len(found), _whole(parts, arguments)
    if name:
        taken_parts += found.pop(name, None) is None
        found.update(_spread(parts[name], found, arguments))
    for each in arguments:
        given = found.get(each.name)
        if given is None:
            if each.required:
                raise UnreadablePayload(_lacks(each, list(parts), arguments))
        elif given.all is not None and each.target.items is None:
            raise UnreadablePayload(
                f"`{each.name}`: the request has {len(given.all)} parts of this name, and the parameter takes one;"
                " send one of them in each request"
            )
    if taken_parts < len(parts):
        check_names([each for each in parts if each != name], [each.name for each in arguments])
    return found


def check_names(names: Iterable[str], known: Sequence[str]) -> None:
    """Check that no part of a form, and no member of an object, would be lost.

    Args:
        known: the names of the parameters.

    Raises:
        UnreadablePayload: one has another name.
    """
    for name in names:
        if name not in known:
            takes, near = ", ".join(f"`{each}`" for each in known), did_you_mean(name, known)
            raise UnreadablePayload(f"`{name[:_SHOWN]}` is no part that the handler takes; those are {takes}{near}")


def member_of(part: Part, name: str) -> Part | None:
    """Return the member of this name, if the part is a JSON object with such a member; else None.

    Raises:
        UnreadablePayload: the object has other members, which would be lost.
    """
    members = None if part.parsed or part.tensor is not None else _object(part)
    if members is None or name not in members:
        return None
    check_names(members, [name])
    return Part(JSON, members[name], parsed=True)


def _whole(parts: Mapping[str, Part], arguments: Sequence[Argument]) -> str:
    """Return the name of the part that is the body of a request without a form; empty if all have names of their own.

    A parameter called `body` shares its name with a whole body: that may be a JSON object for all parameters.
    """
    names = [each.name for each in arguments]
    for name in _WHOLE:
        if name in parts and name not in names:
            return name
    alone = len(parts) == 1 and _BODY in parts and parts[_BODY].all is None
    return _BODY if alone and _names_any(_object(parts[_BODY]), arguments) else ""


def _spread(whole: Part, given: Mapping[str, Part], arguments: Sequence[Argument]) -> dict[str, Part]:
    """Return the parts that a whole body is, or has, for the parameters.

    Args:
        given: the parts beside it: of the query, or of a form.

    Raises:
        UnreadablePayload: a parameter is given in both, or the body is for none or several of the parameters.
    """
    alone = len(arguments) == 1
    left = [each for each in arguments if each.name not in given]
    takes = left if len(left) == 1 else [each for each in left if each.required]
    members = None
    if whole.tensor is None and not (alone and (arguments[0].target.objects or _is_text(whole, arguments[0]))):
        members = _object(whole)
    if members is not None and _names_any(members, arguments):
        for name, part in given.items():
            if name in members:
                inside = excerpt(repr(members[name]), 100)
                raise _twice(name, part, f"{inside} as a member of the body")
        made = {each.name: Part(JSON, members[each.name], parsed=True) for each in arguments if each.name in members}
        if len(made) < len(members):
            check_names(members, [each.name for each in arguments])
        if len(made) < len(left):
            lacking = next((each for each in left if each.required and each.name not in members), None)
            if lacking is not None:
                raise UnreadablePayload(_lacks(lacking, list(members), arguments))
        return made
    if not len(whole.value) and (given or not any(each.required for each in left)):
        return {}  # no body, as of a request with a query
    if members == {} and not alone and not any(each.required for each in left):
        return {}
    if not left:
        name, part = next(iter(given.items()))
        raise _twice(name, part, f"a body of {len(whole.value)} bytes beside that")
    if len(takes) == 1 and (members is None or alone or _takes_any_object(takes[0], whole)):
        return {takes[0].name: whole}
    names = ", ".join(f"`{each.name}`" for each in arguments)
    if members is not None:
        raise UnreadablePayload(_lacks(takes[0] if takes else left[0], list(members), arguments))
    expected = f"a JSON object or a form with {names}"
    try:
        kind = type(msgspec.json.decode(whole.value)).__name__
    except (ValueError, RecursionError) as error:
        raise UnreadablePayload(f"The request should be {expected}, and is not JSON: {error}") from None
    raise UnreadablePayload(f"The request should be {expected}, and is a JSON {kind}")


def _twice(name: str, part: Part, other: str) -> UnreadablePayload:
    value = excerpt(repr(bytes(part.value[:100]).decode("utf-8", "replace")), 100)
    return UnreadablePayload(
        f"`{name}`: the request has {value} as a part or a parameter of its query, and {other}; send one of the two"
    )


def _takes_any_object(argument: Argument, whole: Part) -> bool:
    """Return whether an object without a member of a parameter's name may be the value itself."""
    return argument.target.objects or _is_text(whole, argument)


def _is_text(whole: Part, argument: Argument) -> bool:
    """Return whether a body is a text for a parameter that takes one, whatever stands in it."""
    return argument.target.kind == "text" and whole.content_type.startswith("text/")


def _may_be_object(part: Part) -> bool:
    value = part.value
    return len(value) > 0 and value[0] in _OBJECT_STARTS


def _object(part: Part) -> dict[str, Any] | None:
    """Return a body's JSON object; None if the body is anything else."""
    if not bytes(part.value[:_MOST_BLANKS]).lstrip().startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(part.value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _names_any(members: Mapping[str, Any] | None, arguments: Sequence[Argument]) -> bool:
    return members is not None and any(each.name in members for each in arguments)


def _lacks(argument: Argument, names: list[str], arguments: Sequence[Argument]) -> str:
    has = f"it has {', '.join(f'`{name[:100]}`' for name in names[:10])}" if names else "it has none"
    way = (
        "send the body as it is (`curl -T FILE`), or a part" if len(arguments) == 1 else "send a part or a JSON member"
    )
    return f"`{argument.name}`: the request lacks this part, {has}; {way} of that name"


@lru_cache(maxsize=32)
def _mime(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
