"""Weights and activations in bfloat16: half the memory traffic, and matrix units with four times the throughput.

Numbers keep the range of float32 and lose two thirds of their digits. Without hardware support for bfloat16, inference
would be many times slower than in float32, so `bf16` is rejected there.
"""

from typing import Any

import torch
from torch import nn

from tsctl.handlers.optimize.checks.processor import BFLOAT16, read_processor
from tsctl.handlers.optimize.trees import map_tensors
from tsctl.handlers.optimize.wrapper import ModelWrapper

FAST_CAPABILITY = 8  # NVIDIA's Ampere, the first with bfloat16 in its tensor cores


def refusal(device: torch.device, cpuinfo: str | None = None) -> str:
    """Return why bfloat16 would not be fast on a device; empty if it would be.

    Args:
        cpuinfo: the text of /proc/cpuinfo, by default this machine's.
    """
    if device.type == "cuda":
        major, _ = torch.cuda.get_device_capability(device)
        name = torch.cuda.get_device_name(device)
        return "" if major >= FAST_CAPABILITY else f"the GPU ({name}) has no fast path for bfloat16"
    processor = read_processor(cpuinfo)
    if BFLOAT16.isdisjoint(processor.flags):
        return f"the processor ({processor.name}) has no fast path for bfloat16: neither AMX nor AVX512_BF16"
    return ""


class Bfloat16(ModelWrapper):
    """A model in bfloat16 with float32 inputs and outputs. Its other members are the model's own."""

    within = "narrow"

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.narrow = model.to(torch.bfloat16)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = self.narrow(*map_tensors(args, _narrow), **map_tensors(kwargs, _narrow))
        return map_tensors(output, _widen)


def _narrow(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float32) if tensor.dtype == torch.bfloat16 else tensor
