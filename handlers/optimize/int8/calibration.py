"""The values between layers of one part, observed while its graph runs."""

from typing import NamedTuple

import torch
from torch import fx, nn

from tsctl.handlers.optimize.int8.layers import LEVELS, Scale
from tsctl.handlers.optimize.int8.layout import LayerNodes, input_of, layers_of, origin

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


class Written(NamedTuple):
    """How a node's values are written; `shape` is that of one of its tensors, `summed` whether a layer may add them."""

    scale: float
    zero: int
    shape: list[int]
    summed: bool = False


Scales = dict[str, Written]  # by `key_of`


def key_of(path: str, node: fx.Node) -> str:
    return f"{path}/{node.name}"


class Calibration:
    """Puts observers into the graph of a part.

    Args:
        path: of the part in the model.
        traced: changed in place.
    """

    def __init__(self, path: str, traced: fx.GraphModule) -> None:
        self._path = path
        self.graph = traced
        modules = dict(traced.named_modules(remove_duplicate=False))
        layers = layers_of(traced.graph, modules, lambda _: True)
        self._sums = {layer.other: layer.last for layer in layers if layer.other is not None}
        self._origins = {node: origin(node, modules) for node in (*map(input_of, layers), *self._sums)}
        self._origins |= {node: node for node in self._origins.values()}
        self._observers = {
            node: self._observe(node) for node in {**self._origins, **dict.fromkeys(self._sums.values())}
        }
        traced.recompile()

    def scales(self) -> Scales:
        """Return how the values are written of those nodes where they can be."""
        found = {node: self._observers[node].scale() for node in dict.fromkeys(self._origins.values())}
        scales: Scales = {}
        for node, first in self._origins.items():
            scale, shape = found[first], self._observers[node].shape
            if scale is not None and shape is not None:
                summed = node in self._sums and self._observers[self._sums[node]].shape == shape
                scales[key_of(self._path, node)] = Written(*scale, [*shape], summed)
        return scales

    def _observe(self, node: fx.Node) -> Observer:
        name, observer = f"observe_{node.name}", Observer()
        self.graph.add_submodule(name, observer)
        after = node
        while after.next.op == "placeholder":  # which all come first
            after = after.next
        with self.graph.graph.inserting_after(after):
            self.graph.graph.call_module(name, (node,))
        return observer


def known_layers(path: str, traced: fx.GraphModule, scales: Scales) -> tuple[list[LayerNodes], dict[fx.Node, Written]]:
    """Return the layers of a part whose inputs can be written, and how, by node."""
    modules = dict(traced.named_modules(remove_duplicate=False))
    found = {node: scales[key] for node in traced.graph.nodes if (key := key_of(path, node)) in scales}
    layers = layers_of(traced.graph, modules, lambda node: node in found and found[node].summed)
    return [layer for layer in layers if input_of(layer) in found], found
