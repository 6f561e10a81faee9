"""`kserve`: KServe's v1 protocol.

`{"instances": [row, …]}` in, `{"predictions": [item, …]}` or `{"explanations": [item, …]}` out.
"""

from typing import Any

from tsctl.handlers.envelopes.envelope import Envelope, Opened
from tsctl.handlers.envelopes.payload import list_of, object_of
from tsctl.handlers.requests.kinds import Kind, kinds_of
from tsctl.handlers.sdk.context import Context


class KServeEnvelope(Envelope):
    def open(self, row: Any) -> Opened:
        return Opened(list_of(object_of(row), "instances"))

    def seal(self, request: Opened, items: list[Any], context: Context) -> dict[str, Any]:  # noqa: ARG002
        explained = kinds_of(context, 1) == [Kind.EXPLAIN]
        return {"explanations" if explained else "predictions": items}
