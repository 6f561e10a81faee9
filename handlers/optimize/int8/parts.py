"""The parts of a model whose code torch.fx can trace: the whole model, else the largest of its modules that can be."""

import inspect
from collections.abc import Iterator
from typing import Any

from torch import fx, nn

from handlers.optimize.around import ModelWrapper
from handlers.optimize.int8.layout import is_layer, strip

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class TracedPart(ModelWrapper):
    """A module that runs a graph instead of its own code. Its other members are the module's.

    Attributes:
        failed: the graph does not run on the inputs that the module gets, for example since an argument that usually
            has its default has another value.
    """

    within = "own"

    def __init__(self, own: nn.Module, graph: fx.GraphModule) -> None:
        super().__init__()
        self.own, self.graph = own, graph
        self.failed = False
        self._signature = inspect.signature(own.forward)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.graph(*in_order(self._signature, args, kwargs))


class ObservedPart(TracedPart):
    """A part whose graph has observers. Where that fails, the module's own code runs."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not self.failed:
            try:
                return super().forward(*args, **kwargs)
            except Exception:  # noqa: BLE001 - the code of models may raise anything
                self.failed = True
        return self.own(*args, **kwargs)


def in_order(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a call by position, with defaults."""
    if not kwargs and len(args) == len(signature.parameters):
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return tuple(bound.arguments[name] for name in signature.parameters)


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
    """Trace a module with the defaults of its arguments; return None if its code cannot be, or has no layers."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return None
    root = nn.Sequential(module) if is_layer(module) else module
    defaults = {each.name: each.default for each in parameters if each.default is not each.empty}
    try:
        graph = fx.Tracer().trace(root, concrete_args=defaults or None)
    except Exception:  # noqa: BLE001 - code that branches on its data may raise anything
        return None
    traced = fx.GraphModule(root, graph)
    modules = dict(traced.named_modules(remove_duplicate=False))
    strip(traced.graph, modules)
    called = [modules[str(node.target)] for node in traced.graph.nodes if node.op == "call_module"]
    return traced if any(map(is_layer, called)) else None
