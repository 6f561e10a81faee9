"""Fold batch normalisation into the convolution before it: the same numbers with one pass less over memory.

torch.fx finds the pairs; the module's own code then runs on, with the normalisation replaced by `nn.Identity`. Parts
whose code cannot be traced are searched one level deeper.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from tsctl.handlers.optimize.own_layers import (
    CONVOLUTIONS,
    NORMALISATIONS,
    LayerTracer,
    base_of,
    split_normalisations,
    uses_weights_as_they_are,
)


def fold(model: nn.Module) -> int:
    """Fold in place every normalisation whose only input is its convolution's output.

    Returns:
        The number of folded normalisations.
    """
    undo = split_normalisations(model)
    with torch.no_grad():
        done = 0
        for parent, place, convolution, normalisation in list(_pairs(model)):
            _take_in(convolution, normalisation)
            setattr(parent, place, nn.Identity())
            done += 1
    undo()
    return done


def count_normalisations(model: nn.Module) -> int:
    """Count the batch normalisations of a model."""
    return len([each for each in model.modules() if isinstance(each, NORMALISATIONS)])


def _pairs(model: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module, nn.Module]]:
    """Yield (parent, name of the normalisation in the parent, convolution, normalisation)."""
    try:
        graph = LayerTracer().trace(model)
    except Exception:  # noqa: BLE001 - code that branches on its data may raise anything
        for child in model.children():
            yield from _pairs(child)
        return
    modules = dict(model.named_modules(remove_duplicate=False))
    calls = Counter(id(modules[str(node.target)]) for node in graph.nodes if node.op == "call_module")
    shared = Counter(id(module) for module in modules.values())
    for node in graph.nodes:
        convolution, normalisation = _called(node, 0, modules), _called(node, 1, modules)
        if convolution is None or normalisation is None:
            continue
        alone = all(calls[id(each)] == shared[id(each)] == 1 for each in (convolution, normalisation))
        if alone and _foldable(convolution, normalisation):
            parent, _, place = str(node.target).rpartition(".")
            yield modules[parent], place, convolution, normalisation


def _called(node: fx.Node, which: int, modules: dict[str, nn.Module]) -> nn.Module | None:
    """Return the module of a normalisation's node (1), or of the node whose output only that node uses (0)."""
    if node.op != "call_module" or len(node.args) != 1 or node.kwargs:
        return None
    if which:
        return modules[str(node.target)]
    before: Any = node.args[0]
    if not isinstance(before, fx.Node) or before.op != "call_module" or len(before.users) != 1:
        return None
    return modules[str(before.target)]


def _foldable(convolution: nn.Module, normalisation: nn.Module) -> bool:
    return (
        base_of(normalisation) in NORMALISATIONS
        and (base_of(convolution) in CONVOLUTIONS or uses_weights_as_they_are(convolution))
        and not normalisation.training
        and normalisation.running_mean is not None  # otherwise the normalisation uses the batch's own mean
        and not any(module._forward_hooks or module._forward_pre_hooks for module in (convolution, normalisation))
    )


def _take_in(convolution: Any, normalisation: Any) -> None:
    transposed = isinstance(convolution, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d))
    if transposed and convolution.groups > 1:
        # The weight's output channels span its first two dimensions.
        _take_in_grouped(convolution, normalisation)
        return
    convolution.weight, convolution.bias = fuse_conv_bn_weights(
        convolution.weight, convolution.bias, normalisation.running_mean, normalisation.running_var,
        normalisation.eps, normalisation.weight, normalisation.bias, transpose=transposed,
    )  # fmt: skip


def _take_in_grouped(convolution: Any, normalisation: Any) -> None:
    scale = torch.rsqrt(normalisation.running_var + normalisation.eps)
    if normalisation.weight is not None:
        scale = scale * normalisation.weight
    old = convolution.weight
    per_group = scale.view(convolution.groups, 1, -1).expand(-1, old.shape[0] // convolution.groups, -1)
    shape = (old.shape[0], old.shape[1], *[1] * (old.dim() - 2))
    bias = -normalisation.running_mean if convolution.bias is None else convolution.bias - normalisation.running_mean
    bias = bias * scale
    if normalisation.bias is not None:
        bias = bias + normalisation.bias
    convolution.weight = nn.Parameter(old * per_group.reshape(shape), old.requires_grad)
    convolution.bias = nn.Parameter(bias, old.requires_grad)
