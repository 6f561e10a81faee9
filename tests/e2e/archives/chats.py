"""A handler of text: answers what it was asked, and a stream byte by byte."""

from typing import Any

from tsctl.handlers.sdk.streaming import send_intermediate_predict_response


def handle(data: list[Any] | None, context: Any) -> list[str] | None:
    if data is None:
        return None
    [row] = data  # the batch size is 1: pieces go to all rows of a batch
    if row.get("stop") == "fail":
        raise ValueError("it was told to fail")
    text = f"{row['data']}|{row.get('max_tokens')}"
    if row.get("stream"):
        for byte in text.encode():
            send_intermediate_predict_response([bytes([byte])], context.request_ids, "", 200, context)
        return [""]
    return [text]
