"""`body`: the handler gets each request's value itself, instead of a dict."""

from typing import Any

from tsctl.handlers.envelopes.envelope import Envelope, Opened
from tsctl.handlers.envelopes.payload import payload_of
from tsctl.handlers.sdk.context import Context


class BodyEnvelope(Envelope):
    def open(self, row: Any) -> Opened:
        return Opened([payload_of(row)])

    def seal(self, request: Opened, items: list[Any], context: Context) -> Any:  # noqa: ARG002
        return items[0]
