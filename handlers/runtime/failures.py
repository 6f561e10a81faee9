"""The answers to rows whose handler failed, and what the model's log says of it."""

import contextlib
import sys

from handlers import wire
from handlers.requests.advice import advice_for
from handlers.requests.excerpt import excerpt, message_of
from handlers.requests.rows import failure
from handlers.requests.tracebacks import describe_error
from handlers.sdk.errors import InvalidResult, NotSerialisable, PredictionException, UnreadablePayload


def tell_failure(error: BaseException, model_dir: str) -> str:
    """Write a traceback to the model's log, unless the handler closed stderr, and return it.

    A wrong result has no traceback, only a sentence.
    """
    text = ""
    with contextlib.suppress(Exception):
        text = message_of(error) if isinstance(error, InvalidResult) else describe_error(error, model_dir)
        print(text, file=sys.stderr, flush=True)  # noqa: T201
    return text


def bad_request(row: wire.Row, error: UnreadablePayload) -> wire.Answer:
    """Return the answer to a row that the handler cannot read."""
    return failure(f"{message_of(error)} (Request {row.id}){advice_for(row)}", 400, "BadRequestException")


def _in_words(error: BaseException) -> str:
    name, text = type(error).__name__, message_of(error)
    return f"{name}: {text}" if text else name


def failed(row: wire.Row, error: BaseException) -> wire.Answer:
    """Return the answer to a row for which the handler raised."""
    if isinstance(error, PredictionException):
        code = error.error_code if isinstance(error.error_code, int) and 200 <= error.error_code <= 599 else 500
        return failure(excerpt(str(error.message)), code)
    if isinstance(error, UnreadablePayload):
        return bad_request(row, error)
    if isinstance(error, InvalidResult):
        return failure(f"{message_of(error)} (Request {row.id})")
    if isinstance(error, NotSerialisable):
        return failure(f"Unsupported model output data type. {message_of(error)} (Request {row.id})")
    what = _in_words(error)
    if isinstance(error, MemoryError) or "CUDA" in what:
        return failure(f"Out of resources. {what} (Request {row.id})", 507)
    return failure(f"Prediction failed: {what} (Request {row.id}){advice_for(row)}")
