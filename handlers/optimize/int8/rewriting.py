"""A traced graph with layers on integers, and conversions only where floats meet them."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx, nn

from tsctl.handlers.optimize.int8.calibration import Written
from tsctl.handlers.optimize.int8.layers import Int8Layer, Scale, dequantise, max_pool2d, quantise
from tsctl.handlers.optimize.int8.layout import VIEWS, LayerNodes, input_of, kind_of, origin, passes_on


def rewrite(traced: fx.GraphModule, layers: list[LayerNodes], scales: Mapping[fx.Node, Written]) -> fx.GraphModule:
    """Return a graph in which these layers run on integers.

    Args:
        scales: for each layer's input, each tensor that is added, and their origins.
    """
    writer = _GraphWriter(traced, layers, scales)
    for node in traced.graph.nodes:
        writer.write(node)
    writer.copy_before_overwriting()
    made = fx.GraphModule(traced, writer.graph)
    made.delete_all_unused_submodules()
    return made


class _GraphWriter:
    def __init__(self, traced: fx.GraphModule, layers: list[LayerNodes], scales: Mapping[fx.Node, Written]) -> None:
        self.graph = fx.Graph()
        self._traced, self._scales = traced, scales
        self._modules: dict[str, nn.Module] = dict(traced.named_modules(remove_duplicate=False))
        self._by_last = {layer.last: layer for layer in layers}
        self._inner = {node for layer in layers for node in _nodes_before_last(layer)}
        self._floats: dict[fx.Node, fx.Node] = {}  # node of the traced graph → ours, of float32 or any other type
        self._integers: dict[fx.Node, fx.Node] = {}
        self._wanted = set[fx.Node]()  # nodes whose values some layer takes as integers
        for layer in reversed(layers):
            self._wanted.add(origin(input_of(layer), self._modules))
            if layer.other is not None and layer.last in self._wanted:
                self._wanted.add(origin(layer.other, self._modules))

    def write(self, node: fx.Node) -> None:
        if node in self._inner:
            return
        if node in self._by_last:
            self._write_layer(self._by_last[node])
        elif passes_on(node, self._modules) and node.all_input_nodes[0] in self._integers:
            self._integers[node] = self._pass_on(node, self._integers[node.all_input_nodes[0]])
        else:
            self._floats[node] = self.graph.node_copy(node, self._as_float)

    def copy_before_overwriting(self) -> None:
        """Copy a tensor before a layer overwrites it, where it is used again, or shares memory with another."""
        place = {node: number for number, node in enumerate(self.graph.nodes)}
        for node in list(self.graph.nodes):
            if node.op != "call_module" or len(node.args) != 2 or not str(node.target).startswith(PREFIX):
                continue
            added = node.args[1]
            fresh = added.op != "placeholder" and kind_of(added, self._modules) in FRESH
            viewed = any(kind_of(user, self._modules) not in FRESH for user in added.users)
            if not fresh or viewed or any(place[user] > place[node] for user in added.users):
                with self.graph.inserting_before(node):
                    copied = self.graph.call_function(torch.clone, (added,))
                node.args = (node.args[0], copied)

    def _write_layer(self, layer: LayerNodes) -> None:
        target = self._scale(layer.last) if layer.last in self._wanted else None
        other = None
        arguments = [self._as_integers(input_of(layer))]
        if layer.other is not None:
            arguments.append(self._as_float(layer.other) if target is None else self._as_integers(layer.other))
            other = None if target is None else self._scale(layer.other)
        float_layer = self._modules[str(layer.first.target)]
        name = f"{PREFIX}{layer.last.name}"
        made = Int8Layer(
            float_layer,
            self._scale(input_of(layer)),
            self._scales[input_of(layer)].shape,
            target,
            layer.activation,
            other,
        )
        self._traced.add_submodule(name, made)
        self._modules[name] = made
        into = self._floats if target is None else self._integers
        into[layer.last] = self.graph.call_module(name, tuple(arguments))

    def _pass_on(self, node: fx.Node, integers: fx.Node) -> fx.Node:
        if kind_of(node, self._modules) in VIEWS:
            return self.graph.node_copy(node, lambda _: integers)
        pool: Any = self._modules[str(node.target)]
        stride = pool.kernel_size if pool.stride is None else pool.stride
        sizes = (each if isinstance(each, tuple) else (each, each) for each in (pool.kernel_size, stride, pool.padding))
        return self.graph.call_function(max_pool2d, (integers, *sizes))

    def _as_integers(self, node: fx.Node) -> fx.Node:
        if node not in self._integers:
            self._integers[node] = self.graph.call_function(quantise, (self._as_float(node), *self._scale(node)))
        return self._integers[node]

    def _as_float(self, node: fx.Node) -> fx.Node:
        if node not in self._floats:
            self._floats[node] = self.graph.call_function(dequantise, (self._integers[node], *self._scale(node)))
        return self._floats[node]

    def _scale(self, node: fx.Node) -> Scale:
        written = self._scales[origin(node, self._modules)]
        return Scale(written.scale, written.zero)


PREFIX = "int8_"
FRESH = {Int8Layer, quantise, dequantise, max_pool2d, torch.clone}  # whose outputs have memory of their own


def _nodes_before_last(layer: LayerNodes) -> list[fx.Node]:
    nodes, node = [], layer.first
    while node is not layer.last:
        nodes.append(node)
        node = next(iter(node.users))
    return nodes
