"""The device of the tests that can run on a GPU: `TSCTL_TEST_DEVICE`, `cpu` by default; `make gpu` sets `cuda:0`."""

import os
from typing import TypeVar

import torch
from torch import nn

from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.optimize.checks.drift import TF32_TOLERANCE

VARIABLE = "TSCTL_TEST_DEVICE"
DEVICE = torch.device(os.environ.get(VARIABLE, "cpu"))
GPU_ID = None if DEVICE.type == "cpu" else DEVICE.index or 0
# How far two orders of the same sums may be apart: convolutions on a GPU use TF32, with a mantissa of 10 bits.
ROUNDING = 1e-6 if GPU_ID is None else TF32_TOLERANCE

# The optimisations that `image_classifier` has by default.
USUAL = ["fast_images", "fold", "channels_last", *([] if GPU_ID is None else ["graph"])]

Handler = TypeVar("Handler", bound=BaseHandler)


def missing() -> str:
    """Return why no test can run on the device; empty if they can."""
    if GPU_ID is None or torch.cuda.device_count() > GPU_ID:
        return ""
    return f"{VARIABLE} is {DEVICE}, and torch {torch.__version__} sees {torch.cuda.device_count()} GPUs: unset it"


def on_device(handler: Handler) -> Handler:
    """Put a handler that no archive was loaded into onto the device, with its model; return it."""
    handler.device = DEVICE
    if isinstance(handler.model, nn.Module):
        handler.model.to(DEVICE)
    return handler
