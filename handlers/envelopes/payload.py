"""What the envelopes made of JSON have in common."""

import json
from collections.abc import Mapping
from typing import Any

from handlers.errors import UnreadablePayload


def payload_of(row: Any) -> Any:
    """The value of a request: its `data`, else its `body`."""
    value = row.get("data")
    return row.get("body") if value is None else value


def object_of(row: Any) -> Mapping[str, Any]:
    """Read a request's JSON object, whether it was sent as JSON or not.

    Raises:
        UnreadablePayload: it is no JSON object.
    """
    value = payload_of(row)
    if value is None:
        return row  # type: ignore[no-any-return]  # an object whose members came as the row's
    if isinstance(value, (bytes, bytearray, str)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UnreadablePayload(f"The request is not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise UnreadablePayload(f"The request should be a JSON object, not a {type(value).__name__}")
    return value


def list_of(document: Mapping[str, Any], key: str) -> list[Any]:
    """Read a list from a request's object.

    Raises:
        UnreadablePayload: there is none of this name.
    """
    value = document.get(key)
    if not isinstance(value, list):
        raise UnreadablePayload(f"The request has no list `{key}`")
    return value
