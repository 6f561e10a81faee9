"""Which function of a handler file is a typed one.

TorchServe's `handle(data, context)` stays what it is, also with hints such as `list[dict]` and `Context`.
"""

import inspect
from collections.abc import Callable
from typing import Any

from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.typed.signature import Signature, is_torchserve_form, read_signature


def signature_of(function: Callable[..., Any]) -> Signature | None:
    """Return the signature of a typed function; None for a function of TorchServe's form, or one without type hints.

    Raises:
        HandlerError: the function is called `predict`, or takes neither TorchServe's arguments nor typed ones.
    """
    if is_torchserve_form(function):
        return None
    try:
        return read_signature(function)
    except HandlerError:
        if getattr(function, "__name__", "") != "predict" and _takes_two(function):
            return None  # called as TorchServe does, whatever the names of its parameters
        raise


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True
