"""Streams as many MiB as the body says, as fast as they are taken."""

from typing import Any

from ts.handler_utils.utils import send_intermediate_predict_response

MIB = 2**20


def handle(data: Any, context: Any) -> Any:
    if data is None:
        return None
    counts = [int(bytes(row["body"])) for row in data]
    for number in range(4 * max(counts)):
        pieces = [b"" if number >= 4 * count else bytes(MIB // 4) for count in counts]
        send_intermediate_predict_response(pieces, context.request_ids, "", 200, context)
    return [b"end"] * len(data)
