"""The values between layers of one part, observed while its graph runs."""

from typing import NamedTuple

from torch import fx

from tsctl.handlers.optimize.int8.layout import LayerNodes, input_of, layers_of, origin
from tsctl.handlers.optimize.int8.ranges import Observer


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
