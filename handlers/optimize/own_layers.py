"""Layers of classes that are derived from torch's, as networks of timm have them.

a subclass with the code of torch's own class         counts as that class
a normalisation that does more after it               becomes torch's own, followed by the rest of its code
a convolution that prepares its input itself          takes a normalisation in, as its weights are used as they are
any other                                             stays as it is, and is counted
"""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from tsctl.handlers.optimize.wrapper import ModelWrapper

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
NORMALISATIONS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
LAYERS = (*CONVOLUTIONS, *NORMALISATIONS, nn.Linear)
_CODE = ("forward", "_conv_forward", "__call__", "_check_input_dim", "_output_padding", "__getattr__")
_CONVOLVE = (
    torch.conv1d, torch.conv2d, torch.conv3d, functional.conv1d, functional.conv2d, functional.conv3d,
)  # fmt: skip
_CHECKS = (torch._assert, getattr, operator.eq, operator.ne, operator.getitem, "dim", "size")


class LayerTracer(fx.Tracer):
    """Traces calls of layers as calls of modules, also where their classes are no longer torch's own."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, LAYERS) or super().is_leaf_module(m, module_qualified_name)


def base_of(module: nn.Module) -> type[nn.Module] | None:
    """Return torch's own class of a layer that computes what this class does; None for any other module."""
    kind = type(module)
    base = next((each for each in kind.__mro__ if each in LAYERS), None)
    if base is None or base is kind:
        return base
    own = kind.__mro__[: kind.__mro__.index(base)]
    replaced = any(name in vars(each) for each in own for name in _CODE)
    # A parametrized weight is a property of a class that torch makes.
    weights = all(name in module._parameters for name in ("weight", "bias"))
    return None if replaced or not weights or hasattr(module, "parametrizations") else base


class SplitNormalisation(ModelWrapper):
    """A normalisation of torch's own class, followed by the rest of a derived one's code."""

    within = "own"

    def __init__(self, own: nn.Module, plain: nn.Module, rest: nn.Module) -> None:
        super().__init__()
        self.own, self.plain, self.rest = own, plain, rest

    def forward(self, value: Any) -> Any:
        return self.rest(self.plain(value))


def split_normalisations(model: nn.Module) -> Callable[[], None]:
    """Split the normalisations of derived classes whose code begins with torch's; return what undoes it.

    Call it for a model in evaluation mode.
    """
    done: list[tuple[nn.Module, str, nn.Module]] = []
    for parent in list(model.modules()):
        if isinstance(parent, SplitNormalisation):
            continue
        for name, child in list(parent.named_children()):
            if isinstance(child, NORMALISATIONS) and base_of(child) is None and not child.training:
                split = _split(child)
                if split is not None:
                    setattr(parent, name, split)
                    done.append((parent, name, child))

    def undo() -> None:
        for parent, name, child in done:
            put: Any = getattr(parent, name)
            if type(put.plain) is not nn.Identity:
                setattr(parent, name, child)

    return undo


def _split(module: Any) -> SplitNormalisation | None:
    base = next(each for each in type(module).__mro__ if each in NORMALISATIONS)
    if module._forward_hooks or module._forward_pre_hooks or module.running_mean is None:
        return None
    graph = traced_alone(module)
    if graph is None:
        return None
    value = next(node for node in graph.nodes if node.op == "placeholder")
    calls = [node for node in graph.nodes if node.target is functional.batch_norm]
    names = ("running_mean", "running_var", "weight", "bias")
    if len(calls) != 1 or calls[0].args[:1] != (value,):
        return None
    given = dict(zip(("input", *names, "training", "momentum", "eps"), calls[0].args, strict=False)) | calls[0].kwargs
    if not all(_is_members(given.get(name), name, module) for name in names):
        return None
    if given.get("training", False) is not False or given.get("eps", 1e-5) != module.eps:
        return None
    others = [node for node in value.users if node is not calls[0]]
    if not all(map(_is_check, others)):
        return None  # the code uses its input a second time
    calls[0].replace_all_uses_with(value)
    graph.erase_node(calls[0])
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    plain: Any = base(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
    plain.weight, plain.bias = module.weight, module.bias
    plain.running_mean, plain.running_var = module.running_mean, module.running_var
    rest = fx.GraphModule(module, graph)
    return SplitNormalisation(module, plain.eval(), rest.eval())


def uses_weights_as_they_are(module: nn.Module) -> bool:
    """Return whether a derived convolution ends with torch's own, on its weights as they are, whatever comes before."""
    graph = traced_alone(module) if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)) else None
    if graph is None or hasattr(module, "parametrizations"):
        return False
    result = next(node for node in graph.nodes if node.op == "output").args[0]
    if not isinstance(result, fx.Node) or result.target not in _CONVOLVE:
        return False
    given = dict(zip(("input", "weight", "bias"), result.args, strict=False)) | result.kwargs
    reads = [node for node in graph.nodes if node.op == "get_attr"]
    own = all(_is_members(given.get(name), name, module) for name in ("weight", "bias"))
    return own and len(reads) == (1 if module.bias is None else 2)


def traced_alone(module: nn.Module) -> fx.Graph | None:
    """Return the graph of a module's own code on one value; None if it cannot be traced."""
    tracer = fx.Tracer()
    try:
        return tracer.trace(module)
    except Exception:  # noqa: BLE001 - code that branches on its data may raise anything
        return None


def _is_members(value: object, name: str, module: nn.Module) -> bool:
    """Return whether an argument is the module's own parameter or buffer of a name; None where it has none."""
    if getattr(module, name) is None:
        return value is None
    return isinstance(value, fx.Node) and value.op == "get_attr" and value.target == name


def _is_check(node: fx.Node) -> bool:
    """Return whether a node is of an assertion on the input's shape, or of its message."""
    return node.target in _CHECKS and all(map(_is_check, node.users))
