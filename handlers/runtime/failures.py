"""The answers to rows whose handler failed, and what the model's log says of it."""

import contextlib
import sys
from collections.abc import Sequence
from typing import cast

from tsctl.handlers import wire
from tsctl.handlers.requests.excerpt import excerpt, message_of
from tsctl.handlers.requests.out_of_memory import is_out_of_memory
from tsctl.handlers.requests.rows import failure
from tsctl.handlers.requests.tracebacks import describe_error
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable, PredictionException, UnreadablePayload
from tsctl.handlers.texts.encodable import class_of, text_of

_FORM = "application/x-www-form-urlencoded"


def advice_for(row: wire.Row) -> str:
    """Return a sentence on how to send the body, after a full stop; empty unless the body was a form without fields."""
    if any(len(value) for _, _, value in row.params):
        return ""
    if not any(name.lower() == "content-type" and value.lower().startswith(_FORM) for name, value in row.headers):
        return ""
    return (
        ". The body came as a form without a field, which is how `curl -d` sends it: add"
        " -H 'Content-Type: text/plain' or -H 'Content-Type: application/json', or send it with -T FILE."
    )


def tell_failure(error: BaseException, model_dir: str) -> str:
    """Write a traceback to the model's log, unless the handler closed stderr, and return it.

    A wrong result has no traceback, only a sentence.
    """
    text = message_of(error) if issubclass(type(error), InvalidResult) else describe_error(error, model_dir)
    with contextlib.suppress(Exception):
        print(text, file=sys.stderr, flush=True)  # noqa: T201
    return text


def bad_request(row: wire.Row, error: BaseException, instead: str = "") -> wire.Answer:
    """Return the answer to a row that the handler cannot read; `instead` as for `failed`."""
    return failure(f"{instead or message_of(error)} (Request {row.id}){advice_for(row)}", 400, "BadRequestException")


def _in_words(error: BaseException) -> str:
    name, text = class_of(error), message_of(error)
    return f"{name}: {text}" if text else name


def failed_together(rows: Sequence[wire.Row], error: BaseException) -> list[wire.Answer]:
    """Return the answers to rows for which the handler raised once.

    The exception's text may quote one of them, and it is not known which: other clients must not read that. Where all
    are equal, as in a measurement, it is about each of them.
    """
    sent = [(row.params, row.headers, row.infer) for row in rows]
    if all(each == sent[0] for each in sent):
        return [failed(row, error) for row in rows]
    instead = f"{class_of(error)}, raised for {len(rows)} requests together; the model's log has its text"
    return [failed(row, error, instead) for row in rows]


def failed(row: wire.Row, error: BaseException, instead: str = "") -> wire.Answer:
    """Return the answer to a row for which the handler raised; an exception of any class, whatever its methods do.

    Args:
        instead: told in place of the exception's text, unless that was meant for all clients of the batch.
    """
    kind = type(error)  # not `isinstance`, which reads an instance's `__class__`, too
    if issubclass(kind, PredictionException):
        try:
            refused = cast(PredictionException, error)
            code, message = refused.error_code, text_of(refused.message)
            status = int(code) if isinstance(code, int) and 200 <= code <= 599 else 500
        except BaseException:  # noqa: BLE001 - of a class that does not call our `__init__`, or replaces the attributes
            status, message = 500, text_of(error)
        return failure(excerpt(message), status)
    if issubclass(kind, UnreadablePayload):
        return bad_request(row, error, instead)
    if issubclass(kind, InvalidResult):
        return failure(f"{message_of(error)} (Request {row.id})")
    if issubclass(kind, NotSerialisable):
        return failure(f"Unsupported model output data type. {instead or message_of(error)} (Request {row.id})")
    what = _in_words(error)
    crowded = is_out_of_memory(error)  # whose text tells of memory alone
    if crowded or "CUDA" in what:
        return failure(f"Out of resources. {what if crowded or not instead else instead} (Request {row.id})", 507)
    return failure(f"Prediction failed: {instead or what} (Request {row.id}){advice_for(row)}")
