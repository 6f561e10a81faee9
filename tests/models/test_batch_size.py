"""Where nobody names a batch size, the client's fallback counts for handlers that take batches, and for no other."""

import json

from tests.kit.said import said_in
from tsctl.daemon.models.registering.spec import default_batch_size
from tsctl.handlers.wire import Declared, Input


def declared(*, batches: bool = True, batch_size: int = 0, waits: bool = False, built_in: bool = False) -> Declared:
    inputs = [Input("texts", "text", "list[str]")]
    return Declared(inputs, batches, batch_size, output="list[dict]", waits=waits, built_in=built_in)


@said_in("sizes.txt")
def test_default_batch_size(given: str) -> str:
    told = json.loads(given)
    says = declared(**told["declared"]) if "declared" in told else None
    size, origin = default_batch_size(told["fallback"], told["handler"], says, told.get("policy", "auto"))
    return f"{size}: {origin}"
