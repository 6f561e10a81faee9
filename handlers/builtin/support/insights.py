"""Helpers for explanations: captum, imported on first use, and the class to explain."""

import importlib
from types import ModuleType
from typing import Any

import torch

from tsctl.handlers.requests.excerpt import excerpt
from tsctl.handlers.requests.gpu_copies import on_host
from tsctl.handlers.sdk.errors import PredictionException, UnreadablePayload


def captum_attr() -> ModuleType:
    """Import `captum.attr`.

    Raises:
        PredictionException: captum is not installed; the client gets status 501.
    """
    try:
        return importlib.import_module("captum.attr")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "captum":
            raise
        raise PredictionException(
            "Explanations need the package captum, which is not installed where this model runs."
            " Install it with: pip install 'tsctl[captum]'",
            501,
        ) from None


def target_of(value: Any) -> Any:
    """Parse a request's `target`, the class to explain: a number, also as text; a list is an index into the output.

    Raises:
        UnreadablePayload: the value is none of these.
    """
    if value is None or value in ("", b""):
        return 0
    if isinstance(value, list) and value and all(isinstance(each, int) for each in value):
        return tuple(value)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        shown = bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, bytearray)) else value
        raise UnreadablePayload(
            f"The request's `target` should be the number of a class, not {excerpt(repr(shown), 100)}"
        ) from None


def attributed(method: Any, inputs: torch.Tensor, target: Any, **options: Any) -> torch.Tensor:
    """Return what a method of captum attributes to the values of `inputs`, one for each, in main memory.

    Raises:
        UnreadablePayload: the model has no class `target`.
    """
    try:
        attributions: torch.Tensor = method.attribute(inputs, target=target, **options)
    except (IndexError, AssertionError, ValueError) as error:
        raise UnreadablePayload(f"The request's `target` {target} is no class of the model: {error}") from error
    return on_host(attributions.detach())
