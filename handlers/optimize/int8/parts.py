"""The parts of a model whose code torch.fx can trace: the whole model, else the largest of its modules that can be."""

import inspect
from collections.abc import Iterator
from typing import Any

from torch import fx, nn

from tsctl.handlers.optimize.around import ModelWrapper
from tsctl.handlers.optimize.int8.layout import is_layer, strip
from tsctl.handlers.optimize.own_layers import LayerTracer

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class TracedPart(ModelWrapper):
    """A module that runs a graph instead of its own code. Its other members are the module's."""

    within = "own"

    def __init__(self, own: nn.Module, graph: fx.GraphModule) -> None:
        super().__init__()
        self.own, self.graph = own, graph

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.graph(*args, **kwargs)


class ObservedPart(TracedPart):
    """A part whose graph has observers. Where that fails, the module's own code runs.

    Attributes:
        failed: the graph does not run on the inputs that the module gets.
    """

    failed = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not self.failed:
            try:
                return super().forward(*args, **kwargs)
            except Exception:  # noqa: BLE001 - the code of models may raise anything
                self.failed = True
        return self.own(*args, **kwargs)


def parts_of(module: nn.Module, path: str, divided: set[str]) -> Iterator[tuple[str, fx.GraphModule]]:
    """Yield (path, traced module) of the parts that have layers for integers.

    Args:
        divided: the paths of modules whose children are to be parts.
    """
    if not any(map(is_layer, module.modules())):
        return
    own_code = is_layer(module) or isinstance(module, CONTAINERS) or not type(module).__module__.startswith("torch.nn.")
    if not own_code:  # torch's own transformer layers read the weights of what they hold
        return
    traced = None if path in divided else trace(module)
    if traced is not None:
        yield path, traced
        return
    for name, child in module.named_children():
        yield from parts_of(child, f"{path}.{name}", divided)


def trace(module: nn.Module) -> fx.GraphModule | None:
    """Trace a module that takes one argument; return None if its code cannot be traced, or has no layers.

    With a second argument, which may be None or left out, one graph would not do for all calls.
    """
    parameters = list(inspect.signature(module.forward).parameters.values())
    if [each.kind for each in parameters] != [inspect.Parameter.POSITIONAL_OR_KEYWORD]:
        return None
    root = nn.Sequential(module) if is_layer(module) else module
    try:
        traced = fx.GraphModule(root, LayerTracer().trace(root))
    except Exception:  # noqa: BLE001 - code that branches on its data may raise anything
        return None
    modules = dict(traced.named_modules(remove_duplicate=False))
    strip(traced.graph, modules)
    called = [modules[str(node.target)] for node in traced.graph.nodes if node.op == "call_module"]
    return traced if any(map(is_layer, called)) else None
