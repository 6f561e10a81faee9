"""Streamed responses: the function a handler calls before it returns the last piece."""

from typing import Any

from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError

NEXT = "ts_stream_next"  # response header: whether a further piece follows, "true" or "false"


def send_intermediate_predict_response(
    ret: list[Any],
    req_id_map: dict[int, str],  # noqa: ARG001 - the context knows the rows; handlers pass it on
    message: str,  # noqa: ARG001 - no client ever saw it
    code: int,
    context: Context | None = None,
) -> None:
    """Send a piece of the response to each request of the batch; may be called any number of times.

    The name and the arguments are those of TorchServe's `ts.handler_utils.utils`. The handler's return value is the
    last piece. Status, headers and content type are fixed by the first piece.

    Args:
        ret: an item for each row, encoded as a result is.
        code: the status of the responses, unless the handler set one.

    Raises:
        HandlerError: no batch is running, or the number of items differs from the number of rows.
    """
    if context is None or context.send_pieces is None or context.request_processor is None:
        raise HandlerError("send_intermediate_predict_response needs the context of the batch that is running")
    if len(ret) != len(context.request_processor):
        raise HandlerError(f"expected {len(context.request_processor)} pieces, one for each row, and got {len(ret)}")
    for idx, processor in enumerate(context.request_processor):
        if code != 200 and processor.get_response_status_code() == 200:
            processor.report_status(code)
        context.set_response_header(idx, NEXT, "true")
    context.send_pieces(ret)
