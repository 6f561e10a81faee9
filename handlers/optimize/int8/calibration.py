"""The values between layers of one part, observed while its graph runs."""

from torch import fx

from handlers.optimize.int8.layers import Scale
from handlers.optimize.int8.layout import LayerNodes, input_of, layers_of, origin
from handlers.optimize.int8.ranges import Observer

Scales = dict[str, tuple[float, int]]  # key of a node → how its values are written
SUM = "+"  # after the key of a tensor that a layer may add


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
        self._origins = {
            node: origin(node, modules) for layer in layers for node in (input_of(layer), layer.other) if node
        }
        self._sums = [(layer.other, layer.last) for layer in layers if layer.other]
        self._observers: dict[fx.Node, Observer] = {}
        for node in dict.fromkeys([*self._origins.values(), *(node for pair in self._sums for node in pair)]):
            self._observe(node)
        traced.recompile()

    def scales(self) -> Scales:
        """Return the scales of the nodes whose values can be written in uint8."""
        found: dict[fx.Node, Scale | None] = {
            node: self._observers[node].scale() for node in dict.fromkeys(self._origins.values())
        }
        scales: Scales = {key_of(self._path, node): scale for node, scale in found.items() if scale is not None}
        for other, last in self._sums:
            scale = found[self._origins[other]]
            if scale is not None and self._observers[other].shape == self._observers[last].shape:
                scales[key_of(self._path, other) + SUM] = scale
        return scales

    def _observe(self, node: fx.Node) -> None:
        name = f"observe_{node.name}"
        self._observers[node] = Observer()
        self.graph.add_submodule(name, self._observers[node])
        after = node
        while after.next.op == "placeholder":  # which all come first
            after = after.next
        with self.graph.graph.inserting_after(after):
            self.graph.graph.call_module(name, (node,))


def known_layers(path: str, traced: fx.GraphModule, scales: Scales) -> tuple[list[LayerNodes], dict[fx.Node, Scale]]:
    """Return the layers of a part whose inputs have scales, and the scales by node."""
    modules = dict(traced.named_modules(remove_duplicate=False))
    of_part = {node: Scale(*scales[key]) for node in traced.graph.nodes if (key := key_of(path, node)) in scales}
    layers = layers_of(traced.graph, modules, lambda node: key_of(path, node) + SUM in scales)
    return [layer for layer in layers if origin(input_of(layer), modules) in of_part], of_part
