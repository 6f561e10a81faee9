"""How the values between layers are written in uint8, by their range on the calibration's inputs.

The range is the one with the least mean squared error (Nagel et al., A White Paper on Neural Network Quantization,
2021, 3.1): a few far values are cut off where all others gain by finer steps.
"""

import torch
from torch import nn

from tsctl.handlers.optimize.int8.layers import LEVELS, Scale

SEEN_VALUES = 1 << 12  # of one tensor of one run, that the error is computed from
MOST_VALUES = 1 << 16  # of all runs
CUTS = [step / 20 for step in range(15)]  # of the range to either side of 0


class Observer(nn.Module):
    """Passes tensors on, and notes their range.

    Attributes:
        shape: of the last tensor; None if there was none, or a tensor was not of float32.
    """

    def __init__(self) -> None:
        super().__init__()
        self.shape: torch.Size | None = None
        self._ends: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []
        self._unfit = False

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        self._unfit = self._unfit or values.dtype != torch.float32 or not values.numel()
        self.shape = None if self._unfit else values.shape
        if not self._unfit:
            flat = values.detach().reshape(-1)
            self._ends += flat.aminmax()
            self._values.append(flat[:: len(flat) // SEEN_VALUES + 1].clone())
            if sum(map(len, self._values)) > MOST_VALUES:  # 155 layers of 32 inputs were 1.3 GB without such limits
                self._values = [torch.cat(self._values)[::2].clone()]
        return values

    def scale(self) -> Scale | None:
        """Return the best scale; None if there is nothing to write, or not as numbers."""
        ends = torch.stack(self._ends) if self._ends else torch.zeros(1)
        low, high = min(ends.min().item(), 0.0), max(ends.max().item(), 0.0)
        if self.shape is None or not ends.isfinite().all() or low == high:
            return None
        values = torch.cat(self._values)
        for low_part, high_part in ((0.0, 1.0), (1.0, 0.0)):  # one end, then the other
            ranges = [(low * (1 - cut * low_part), high * (1 - cut * high_part)) for cut in CUTS]
            low, high = min(ranges, key=lambda ends: squared_error(values, scale_of(*ends)))
        return scale_of(low, high)


def scale_of(low: float, high: float) -> Scale:
    """Return the scale for values from `low` to `high`, which lie around 0.0."""
    scale = (high - low) / LEVELS
    return Scale(scale, round(-low / scale))


def squared_error(values: torch.Tensor, scale: Scale) -> float:
    """Return the mean squared error of values written in uint8."""
    integers = (values / scale.scale).round_().clamp_(-scale.zero, LEVELS - scale.zero)
    return (integers * scale.scale - values).square_().mean().item()
