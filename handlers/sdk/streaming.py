"""Streamed responses: the function a handler calls before it returns the last piece."""

from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import HandlerError

NEXT = "ts_stream_next"  # response header: whether a further piece follows, "true" or "false"


def send_intermediate_predict_response(
    ret: list[Any],
    req_id_map: dict[int, str],
    message: str,  # noqa: ARG001 - no client ever saw it
    code: int,
    context: Context | None = None,
) -> None:
    """Send a piece of the response to each of some requests of the batch; may be called any number of times.

    The name and the arguments are those of TorchServe's `ts.handler_utils.utils`. The handler's return value is the
    last piece. Status, headers and content type are fixed by the first piece.

    Args:
        ret: items, encoded as a result is.
        req_id_map: index in `ret` → the id of the item's request: `context.request_ids` for all of them, or a part.
        code: the status of the responses, unless the handler set one.

    Raises:
        HandlerError: no batch is running, an id is of none of its requests, or the number of items is not that of ids.
    """
    if context is None or context.send_pieces is None or context.request_processor is None:
        raise HandlerError("send_intermediate_predict_response needs the context of the batch that is running")
    ids = context.request_ids
    places: Sequence[int] = range(len(ids))
    if req_id_map is not ids and req_id_map != ids:
        places = _places_of(req_id_map, ids)
        ret = [ret[index] for index in req_id_map if index < len(ret)]
    if len(ret) != len(places):
        raise HandlerError(f"expected {len(places)} pieces, one for each row, and got {len(ret)}")
    for place in places:
        processor = context.request_processor[place]
        if code != 200 and processor.get_response_status_code() == 200:
            processor.report_status(code)
        processor.add_response_property(NEXT, "true")
    context.send_pieces(ret, places)


def _places_of(req_id_map: Mapping[int, str], ids: Mapping[int, str]) -> list[int]:
    """Return the places in the batch of some of its requests.

    Raises:
        HandlerError: an id is of none of them.
    """
    known = {request_id: place for place, request_id in ids.items()}
    strange = next((each for each in req_id_map.values() if each not in known), None)
    if strange is not None:
        raise HandlerError(f"`{strange}` is the id of no request of the batch that is running")
    return [known[each] for each in req_id_map.values()]
