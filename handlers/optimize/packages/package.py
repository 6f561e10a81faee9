"""A model's compiled graphs as libraries: mapped in 0.2 s for ResNet-152, run without torch.compile."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import nn
from torch.utils import _pytree as pytree

FULL, ONE, REST = "full", "one", "rest"


class Graph(msgspec.Struct):
    """One graph: `output_spec` says how the output's tensors are nested; the sizes of the recorded batch's inputs.

    Attributes:
        batched: for each input whether its first dimension is the batch's; empty: none is.
        least: rows that the batch's dimension has at least, where there is one.
        held: internal name of a weight → its name in the model; empty if the library holds the weights itself.
    """

    shapes: list[list[int]]
    output_spec: str
    batched: list[bool] = []
    held: dict[str, str] = {}
    least: int = 2

    def fits(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Return whether the graph serves inputs of these shapes."""
        if not self.batched:
            return all(list(shape) == own for shape, own in zip(shapes, self.shapes, strict=True))
        sizes = set()
        for shape, own, batched in zip(shapes, self.shapes, self.batched, strict=True):
            if len(shape) != len(own) or list(shape[batched:]) != own[batched:]:
                return False
            if batched:
                sizes.add(shape[0])
        return len(sizes) == 1 and min(sizes) >= self.least


class Description(msgspec.Struct):
    """All graphs of a model.

    Attributes:
        input_spec: how the tensors of the arguments are nested.
        dtypes: of the inputs: `float32`.
        drift: of full batches from the model's output (checks/drift.py).
    """

    input_spec: str
    dtypes: list[str]
    graphs: dict[str, Graph]
    drift: float = 0.0


class Packages:
    """The libraries of a folder, loaded.

    Args:
        model: has the weights that some of the libraries use.

    Raises:
        Exception: a library cannot be loaded.
    """

    def __init__(self, folder: Path, description: Description, model: nn.Module) -> None:
        self.drift = description.drift
        self._input_spec = pytree.treespec_loads(description.input_spec)
        self._dtypes = [getattr(torch, name) for name in description.dtypes]
        self._graphs: list[tuple[Graph, Any, pytree.TreeSpec]] = []
        weights = weights_of(model)
        for name in (FULL, ONE, REST):
            graph = description.graphs.get(name)
            if graph is None:
                continue
            runner = torch._C._aoti.AOTIModelContainerRunnerCpu(str(folder / f"{name}.so"), 1)
            if graph.held:
                held = {inner: weights[outer].detach() for inner, outer in graph.held.items()}
                runner.update_constant_buffer(held, False, True, True)
            self._graphs.append((graph, runner, pytree.treespec_loads(graph.output_spec)))

    def graph_for(self, leaves: Sequence[Any]) -> tuple[Any, pytree.TreeSpec] | None:
        """Return what runs these inputs; None if no library does."""
        if len(leaves) != len(self._dtypes):
            return None
        for leaf, dtype in zip(leaves, self._dtypes, strict=True):
            if type(leaf) is not torch.Tensor or leaf.dtype != dtype or leaf.device.type != "cpu":
                return None
            if leaf.requires_grad and torch.is_grad_enabled():
                return None
        shapes = [leaf.shape for leaf in leaves]
        for graph, runner, output_spec in self._graphs:
            if graph.fits(shapes):
                return runner, output_spec
        return None

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any] | None:
        """Return the output for a model's arguments, as a tuple of one; None if no library serves them."""
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        if spec != self._input_spec:
            return None
        found = self.graph_for(leaves)
        if found is None:
            return None
        runner, output_spec = found
        outputs = runner.run([leaf.contiguous() for leaf in leaves])
        return (pytree.tree_unflatten(outputs, output_spec),)


def weights_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return all weights and buffers under each of their names."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return dict(named)
