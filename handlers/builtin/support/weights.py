"""A model's weights on their way to a GPU: each once, through a little pinned memory.

    weights of the model ──▶ one half  ──a copy──▶ the GPU      while it is under way,
                         ──▶ the other ──a copy──▶              the next ones are written

`model.to(device)` copies each tensor from pageable memory, which the driver stages itself, and waits for each. From
pinned memory a copy is only begun: one wait for each 8 MiB at most, and one at the end.
"""

import torch
from torch import nn

HALF = 8 * 2**20  # bytes: torch keeps pinned memory, by powers of two, and batches of images take such


def moved(model: nn.Module, device: torch.device) -> nn.Module:
    """Return a model on a device, as `model.to(device)` does."""
    if device.type != "cuda" or type(model).to is not nn.Module.to:
        return model.to(device)
    with torch.cuda.device(device):
        slab = _Slab(device)
        model._apply(slab.copied)  # what `to` calls, too
        slab.wait()
    return model


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is one in main memory, whose bytes lie there in order."""
    return (
        type(tensor) in (torch.Tensor, nn.Parameter)
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
        and tensor.is_contiguous()
    )


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1).view(torch.uint8)


class _Slab:
    """Pinned memory in two halves: one is written while the other is copied."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._halves = [torch.empty(HALF, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
        self._ends: list[torch.cuda.Event | None] = [None, None]  # of the copies from each
        self._now, self._used = 0, 0

    def copied(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor on the GPU; its copy is under way."""
        if not _is_plain(tensor):
            return tensor.to(self._device)
        there = torch.empty_like(tensor, device=self._device)
        for here, place in zip(_bytes_of(tensor).split(HALF), _bytes_of(there).split(HALF), strict=True):
            place.copy_(self._room(len(here)).copy_(here), non_blocking=True)
        return there

    def wait(self) -> None:
        """Wait until all is there."""
        torch.cuda.current_stream(self._device).synchronize()

    def _room(self, size: int) -> torch.Tensor:
        """Return so many bytes that no copy reads any more."""
        if self._used + size > HALF:
            end = self._ends[self._now] = torch.cuda.Event(blocking=True)
            end.record()
            self._now, self._used = 1 - self._now, 0
            before = self._ends[self._now]
            if before is not None:
                before.synchronize()
        start, self._used = self._used, self._used + size
        return self._halves[self._now][start : self._used]
