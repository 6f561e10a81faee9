"""`json`: `{"instances": [row, …]}` in, `{"predictions": [item, …]}` out, as in TensorFlow Serving.

A row, or a member of a row, of the form `{"b64": text}` becomes bytes.
"""

import base64
from typing import Any

from tsctl.handlers.envelopes.envelope import Envelope, Opened
from tsctl.handlers.envelopes.payload import list_of, object_of
from tsctl.handlers.requests.kinds import has_requests
from tsctl.handlers.requests.rows import to_json
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import NotSerialisable, UnreadablePayload


class JSONEnvelope(Envelope):
    def open(self, row: Any) -> Opened:
        rows = [_decoded(each) for each in list_of(object_of(row), "instances")]
        return Opened([
            {key: _decoded(value) for key, value in each.items()} if isinstance(each, dict) else each for each in rows
        ])  # fmt: skip

    def seal(self, request: Opened, items: list[Any], context: Context) -> str:  # noqa: ARG002
        try:
            text = to_json({"predictions": items})
        except (TypeError, ValueError, RecursionError) as error:
            raise NotSerialisable(str(error)) from error
        if has_requests(context) and context.get_response_content_type(0) is None:
            context.set_response_content_type(0, "application/json")
        return text


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict) or list(value) != ["b64"]:
        return value
    try:
        return base64.b64decode("".join(value["b64"].split()), validate=True)
    except (AttributeError, ValueError) as error:
        raise UnreadablePayload(f"A `b64` of the request is not base64: {error}") from None
