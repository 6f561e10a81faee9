"""Parsing shared by the JSON envelopes."""

import json
from collections.abc import Mapping
from typing import Any

from tsctl.handlers.sdk.errors import UnreadablePayload


def payload_of(row: Any) -> Any:
    """Return the value of a request: its `data`, else its `body`."""
    value = row.get("data")
    return row.get("body") if value is None else value


def object_of(row: Any) -> Mapping[str, Any]:
    """Return a request's JSON object, whether sent as JSON or not.

    Raises:
        UnreadablePayload: the request is not a JSON object.
    """
    value = payload_of(row)
    if value is None:
        return row  # type: ignore[no-any-return]  # the members of the object came as the row's own
    if isinstance(value, (bytes, bytearray, str)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UnreadablePayload(f"The request is not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise UnreadablePayload(f"The request should be a JSON object, not a {type(value).__name__}")
    return value


def list_of(document: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list member of a request's object.

    Raises:
        UnreadablePayload: the object has no list of this name.
    """
    value = document.get(key)
    if not isinstance(value, list):
        raise UnreadablePayload(f"The request has no list `{key}`")
    return value
