"""The answers to rows whose handler failed, and what the model's log says of it."""

import contextlib
import sys
from collections.abc import Sequence
from typing import cast

from tsctl.handlers import wire
from tsctl.handlers.requests.excerpt import excerpt, message_of
from tsctl.handlers.requests.rows import failure
from tsctl.handlers.requests.tracebacks import describe_error
from tsctl.handlers.runtime.out_of_memory import is_out_of_memory
from tsctl.handlers.sdk.context import RequestProcessor
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


def bad_request(row: wire.Row, error: BaseException) -> wire.Answer:
    """Return the answer to a row that the handler cannot read."""
    return failure(f"{message_of(error)} (Request {row.id}){advice_for(row)}", 400, "BadRequestException")


def _in_words(error: BaseException) -> str:
    name, text = class_of(error), message_of(error)
    return f"{name}: {text}" if text else name


def failed(row: wire.Row, error: BaseException) -> wire.Answer:
    """Return the answer to a row for which the handler raised; an exception of any class, whatever its methods do."""
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
        return bad_request(row, error)
    if issubclass(kind, InvalidResult):
        return failure(f"{message_of(error)} (Request {row.id})")
    if issubclass(kind, NotSerialisable):
        return failure(f"Unsupported model output data type. {message_of(error)} (Request {row.id})")
    what = _in_words(error)
    if is_out_of_memory(error) or "CUDA" in what:
        return failure(f"Out of resources. {what} (Request {row.id})", 507)
    return failure(f"Prediction failed: {what} (Request {row.id}){advice_for(row)}")


SHARE = 0.1  # of a worker's time
SAVED = 1.0  # seconds a new worker starts with, and the most that idle time can accumulate


class Allowance:
    """After a handler raised for a batch, its rows run again one by one, so that only the faulty rows fail.

    Exceptions: errors that a handler raises on purpose stand, and the reruns delay other batches. Reruns therefore take
    at most a tenth of a worker's time; beyond that limit a batch fails whole.

    Where memory does not suffice for a batch, its halves run instead, and theirs, down to single rows: in at most about
    three times the batch's own time, and seldom, as the daemon learns of it. So that limit is not theirs.

    The time budget for running single rows. Times are seconds, on any one monotonic clock.

    The budget grows as time passes. A batch's reruns start if any budget is left and are then finished; an overrun must
    be earned back before the next. The reruns never take more than `saved`, plus `share` of the time, plus one batch.
    """

    def __init__(self, now: float, share: float = SHARE, saved: float = SAVED) -> None:
        self._share = share
        self._saved = saved
        self._left = saved
        self._at = now

    def __repr__(self) -> str:
        return f"<Allowance {self._left:g} s at {self._at:g}>"

    def left(self, now: float) -> float:
        """Return the seconds that may be spent; zero or less if the budget is used up."""
        return min(self._saved, self._left + self._share * (now - self._at))

    def spend(self, began: float, ended: float) -> None:
        """Charge the time during which rows ran alone, from `began` to `ended`."""
        self._left = self.left(ended) - (ended - began)
        self._at = ended


def may_isolate(error: BaseException, rows: Sequence[RequestProcessor]) -> bool:
    """Return whether rows may run alone after the handler raised for all of them.

    Not after a deliberate error (a PredictionException, or a row's status was set), nor a result of the wrong length,
    which is no row's fault, nor when the handler exited or was interrupted.
    """
    kind = type(error)  # an exception's `__class__`, which `isinstance` reads, may raise
    if not issubclass(kind, Exception) or issubclass(kind, (PredictionException, InvalidResult)):
        return False
    return not any(row.status_was_set for row in rows)
