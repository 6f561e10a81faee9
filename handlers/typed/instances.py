"""Requests of KServe's first protocol: `{"instances": [a, b]}` in, `{"predictions": [A, B]}` out.

Each instance is a request of its own for the function: the value of the only parameter, or of the only one without a
default, or an object with members named after the parameters. Bytes, images and sounds are in base64, plain or as
`{"b64": …}`, which is TensorFlow Serving's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, final

import msgspec

from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.typed.body import JSON, Part, check_names
from tsctl.handlers.typed.signature import Argument

_BINARY = ("bytes", "image", "audio")


@final
class Instances:
    """The values of a request's instances: for each, parameter → value."""

    __slots__ = ("rows",)

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows


def instances_of(part: Part) -> list[Any] | None:
    """Return the instances of a request's body; None for any other body.

    Raises:
        UnreadablePayload: its `instances` are no list, or there are other members, which would be lost.
    """
    try:
        document = msgspec.json.decode(part.value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or "instances" not in document:
        return None
    instances = document["instances"]
    if not isinstance(instances, list):
        raise UnreadablePayload(f"`instances`: expected a list, got {type(instances).__name__}")
    for name in document:
        if name != "instances":
            raise UnreadablePayload(
                f"`{name[:100]}`: a request with `instances` has no other member; what is for all of them may be in the"
                " query"
            )
    return instances


def parts_of_instance(instance: Any, given: Mapping[str, Part], arguments: Sequence[Argument]) -> dict[str, Part]:
    """Return the parts of the parameters that an instance fills.

    Args:
        given: the parts beside the instances: parameters of the query.

    Raises:
        UnreadablePayload: a required part is missing, or the instance or a member of it would be lost.
    """
    found = {each.name: given[each.name] for each in arguments if each.name in given}
    itself = len(arguments) == 1 and arguments[0].target.objects
    if isinstance(instance, dict) and not itself and any(each.name in instance for each in arguments):
        members = [each for each in arguments if each.name in instance]
        check_names(instance, [each.name for each in arguments])
        for each in members:
            if each.name in given:
                raise UnreadablePayload(f"`{each.name}` is in the query and in the instance; send one of the two")
            found[each.name] = _part(instance[each.name], each)
    else:
        left = [each for each in arguments if each.name not in found]
        takes = left if len(left) == 1 else [each for each in left if each.required]
        if len(takes) == 1:
            found[takes[0].name] = _part(instance, takes[0])
        elif instance != {} and not any(each.required for each in left):
            names = ", ".join(f"`{each.name}`" for each in arguments)
            raise UnreadablePayload(f"the instance is for none of the parameters: send an object with {names}")
    missing = next((each.name for each in arguments if each.required and each.name not in found), "")
    if missing:
        names = ", ".join(f"`{each.name}`" for each in arguments)
        raise UnreadablePayload(f"`{missing}` is missing: an instance is an object with {names}")
    return found


def _part(value: Any, argument: Argument) -> Part:
    if argument.target.kind in _BINARY and isinstance(value, dict) and list(value) == ["b64"]:
        value = value["b64"]
    return Part(JSON, value, parsed=True)


def predictions(items: Sequence[Any]) -> Any:
    """Return the answer to a request: the items of its instances, or the first exception among them."""
    failed = [item for item in items if isinstance(item, BaseException)]
    return failed[0] if failed else {"predictions": list(items)}
