"""Which nodes of a traced graph become one layer on integers, and which pass integers on.

    convolution ──▶ + other tensor ──▶ activation        one layer; "+" for two-dimensional convolutions only
    linear layer ──▶ activation                          one layer
    max_pool2d, flatten                                  the same for integers as for floats

A node is taken in where nothing else uses the one before it.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import fx, nn
from torch.nn import functional

from tsctl.handlers.optimize.int8.layers import CONVOLUTIONS, NONE, Activation
from tsctl.handlers.optimize.own_layers import base_of

RELU, GELU = Activation("relu"), Activation("gelu", (), "none")
RELU6, SILU, HARDSWISH = Activation("hardtanh", (0.0, 6.0)), Activation("swish"), Activation("hardswish")
OF_CONVOLUTIONS: dict[Any, Activation] = {
    nn.ReLU: RELU, functional.relu: RELU, torch.relu: RELU, torch.relu_: RELU, "relu": RELU, "relu_": RELU,
    nn.ReLU6: RELU6, functional.relu6: RELU6, nn.SiLU: SILU, functional.silu: SILU,
    nn.Hardswish: HARDSWISH, functional.hardswish: HARDSWISH,
}  # fmt: skip
OF_LINEAR = {key: each for key, each in OF_CONVOLUTIONS.items() if each is RELU}
OF_LINEAR |= {nn.GELU: GELU, functional.gelu: GELU}
ACTIVATIONS: dict[type, dict[Any, Activation]] = {
    nn.Linear: OF_LINEAR, nn.Conv1d: OF_CONVOLUTIONS, nn.Conv2d: OF_CONVOLUTIONS, nn.Conv3d: {},
}  # fmt: skip
SUMS = {operator.add, operator.iadd, torch.add, "add", "add_"}
VIEWS = {nn.Flatten, torch.flatten, "flatten"}
DROPOUTS = {nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d}


@dataclass
class LayerNodes:
    """The nodes that become one layer.

    Attributes:
        first: the convolution or linear layer.
        last: the node whose value the layer gives.
        other: the node that is added, if one is.
    """

    first: fx.Node
    last: fx.Node
    activation: Activation = NONE
    other: fx.Node | None = None


def kind_of(node: fx.Node, modules: Mapping[str, nn.Module]) -> Any:
    """Return the type of the called module, or the called function's or method's key in the tables above."""
    if node.op != "call_module":
        return node.target
    module = modules[str(node.target)]
    return base_of(module) or type(module)


def is_layer(module: nn.Module) -> bool:
    """Return whether a module can run on integers: torch's own class, or one that computes the same."""
    if module._forward_hooks or module._forward_pre_hooks:
        return False
    base, plain = base_of(module), cast(Any, module)
    if base is nn.Linear:
        return bool(plain.weight.dtype == torch.float32)
    if base not in CONVOLUTIONS:
        return False
    return plain.padding_mode == "zeros" and not isinstance(plain.padding, str) and plain.weight.dtype == torch.float32


def layers_of(
    graph: fx.Graph, modules: Mapping[str, nn.Module], may_add: Callable[[fx.Node], bool]
) -> list[LayerNodes]:
    """Return the layers of a graph in its order.

    Args:
        may_add: returns whether a node's value has the shape of the sum that it is part of.
    """
    layers, taken = [], set[fx.Node]()
    # From the end: of two convolutions whose outputs are added, the later takes the sum in.
    for node in reversed(graph.nodes):
        if node.op != "call_module" or not _plain(node) or not is_layer(modules[str(node.target)]):
            continue
        layer, kind = LayerNodes(node, node), kind_of(node, modules)
        after = _only_user(node)
        if kind is nn.Conv2d and after is not None and after not in taken and kind_of(after, modules) in SUMS:
            others = [each for each in after.args if isinstance(each, fx.Node) and each is not node]
            if len(after.args) == 2 and len(others) == 1 and not after.kwargs and may_add(others[0]):
                layer.last, layer.other = after, others[0]
                taken.add(after)
                after = _only_user(after)
        if after is not None and after not in taken:
            activation = _activation(after, modules, ACTIVATIONS[kind])
            if activation is not None:
                layer.last, layer.activation = after, activation
        layers.append(layer)
    return layers[::-1]


def input_of(layer: LayerNodes) -> fx.Node:
    before = layer.first.args[0]
    assert isinstance(before, fx.Node)
    return before


def origin(node: fx.Node, modules: Mapping[str, nn.Module]) -> fx.Node:
    """Return the node whose integers a node's are: its own, or those of a node before it."""
    while passes_on(node, modules):
        node = node.all_input_nodes[0]
    return node


def passes_on(node: fx.Node, modules: Mapping[str, nn.Module]) -> bool:
    """Return whether a node does the same to integers as to floats."""
    kind = kind_of(node, modules)
    if kind in VIEWS:
        return len(node.all_input_nodes) == 1
    if kind is nn.MaxPool2d:
        pool: Any = modules[str(node.target)]
        return pool.dilation in (1, (1, 1)) and not pool.ceil_mode and not pool.return_indices
    return False


def strip(graph: fx.Graph, modules: Mapping[str, nn.Module]) -> None:
    """Remove the nodes that do nothing."""
    for node in list(graph.nodes):
        if node.op != "call_module" or not _plain(node):
            continue
        module = modules[str(node.target)]
        if type(module) is nn.Identity or (type(module) in DROPOUTS and not module.training):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _plain(node: fx.Node) -> bool:
    return len(node.args) == 1 and isinstance(node.args[0], fx.Node) and not node.kwargs


def _only_user(node: fx.Node) -> fx.Node | None:
    return next(iter(node.users)) if len(node.users) == 1 else None


def _activation(node: fx.Node, modules: Mapping[str, nn.Module], known: dict[Any, Activation]) -> Activation | None:
    found = known.get(kind_of(node, modules))
    if found is None or len(node.args) != 1 or set(node.kwargs) - {"inplace", "approximate"}:
        return None
    if found is not GELU:
        return found
    way = modules[str(node.target)].approximate if node.op == "call_module" else node.kwargs.get("approximate", "none")
    return found._replace(variant=str(way))
