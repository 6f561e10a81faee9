"""The envelopes of whole requests.

json    `{"instances": [row, …]}` in, `{"predictions": [item, …]}` out, as in TensorFlow Serving; a row, or a member of
        a row, of the form `{"b64": text}` becomes bytes
kserve  the same in KServe's v1 protocol, or `{"explanations": [item, …]}` out
body    the handler gets each request's value itself, instead of a dict
"""

import base64
from typing import Any

from tsctl.handlers.envelopes.envelope import Envelope, Opened, list_of, object_of
from tsctl.handlers.requests.kinds import Kind, has_requests, kinds_of
from tsctl.handlers.requests.rows import to_json, value_of
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


class KServeEnvelope(Envelope):
    def open(self, row: Any) -> Opened:
        return Opened(list_of(object_of(row), "instances"))

    def seal(self, request: Opened, items: list[Any], context: Context) -> dict[str, Any]:  # noqa: ARG002
        explained = kinds_of(context, 1) == [Kind.EXPLAIN]
        return {"explanations" if explained else "predictions": items}


class BodyEnvelope(Envelope):
    def open(self, row: Any) -> Opened:
        return Opened([value_of(row)])

    def seal(self, request: Opened, items: list[Any], context: Context) -> Any:  # noqa: ARG002
        return items[0]
