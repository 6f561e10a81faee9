"""A model whose convolutions and linear layers run on 8-bit integers."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx, nn

from tsctl.handlers.optimize import folding
from tsctl.handlers.optimize.checks.processor import INTEGERS_X86, read_processor
from tsctl.handlers.optimize.int8 import layers
from tsctl.handlers.optimize.int8.calibration import Calibration, Scales, known_layers
from tsctl.handlers.optimize.int8.layout import is_layer, strip
from tsctl.handlers.optimize.int8.rewriting import rewrite
from tsctl.handlers.optimize.own_layers import LayerTracer
from tsctl.handlers.optimize.wrapper import ModelWrapper

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


ROOT = "whole"


def refusal(model: Any, device: torch.device, cpuinfo: str | None = None) -> str:
    """Return why a model cannot run on integers here, or would not be faster; empty if it can.

    Args:
        cpuinfo: the text of /proc/cpuinfo, by default this machine's.
    """
    if device.type != "cpu":
        return "`int8` is for processors; on a GPU name `bf16`"
    if isinstance(model, torch.jit.ScriptModule):
        return "the model is TorchScript, whose layers cannot be replaced; archive its Python code and weights"
    processor = read_processor(cpuinfo)
    if INTEGERS_X86.isdisjoint(processor.flags):
        missing = "neither AMX nor VNNI; name `bf16` or `compile`"
        return f"the processor ({processor.name}) has no fast path for int8: {missing}"
    if not layers.has_operators():
        return f"torch {torch.__version__} has other int8 operators than tsctl knows; name `bf16` or `compile`"
    return ""


class Int8(ModelWrapper):
    """A model on integers with float32 inputs and outputs. Its other members are the model's own.

    Args:
        model: changed in place.
    """

    within = ROOT

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        folding.fold(model)
        self.whole = model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.whole(*args, **kwargs)

    def calibrate(self, run: Callable[[], object]) -> Scales:
        """Return the scales for the inputs that `run` runs this model on; it is called again after a part failed."""
        divided = set[str]()
        while True:
            parts = {path: Calibration(path, traced) for path, traced in parts_of(self.whole, ROOT, divided)}
            observed = {path: ObservedPart(self.get_submodule(path), part.graph) for path, part in parts.items()}
            for path, part in observed.items():
                self._put(path, part)
            if parts:
                run()
            for path, part in observed.items():
                self._put(path, part.own)
            failed = {path for path, part in observed.items() if part.failed}
            if not failed:
                return {key: scale for part in parts.values() for key, scale in part.scales().items()}
            divided |= failed

    def count(self) -> int:
        """Count the convolutions and linear layers that the model has, whether or not they can run on integers."""
        kinds = (*layers.CONVOLUTIONS, nn.Linear)
        return len([each for each in self.whole.modules() if isinstance(each, kinds)])

    def convert(self, scales: Scales) -> int:
        """Replace the layers whose inputs have scales; their float32 weights are given up.

        Returns:
            The number of layers.
        """
        paths = {key.partition("/")[0] for key in scales}
        divided = {path[:end] for path in paths for end, letter in enumerate(path) if letter == "."}
        times = Counter(module for _, module in self.named_modules(remove_duplicate=False))
        replaced: list[nn.Module] = []
        for path, traced in list(parts_of(self.whole, ROOT, divided)):
            if path in paths:
                found, of_part = known_layers(path, traced, scales)
                replaced += [traced.get_submodule(str(layer.first.target)) for layer in found]
                self._put(path, TracedPart(self.get_submodule(path), rewrite(traced, found, of_part)))
        for module in replaced:
            if times[module] == 1:  # not also a part of another module, which may use it in float32
                for name, weight in list(module.named_parameters(recurse=False)):
                    # Empty, but there: code of models asks for a weight's dtype or device.
                    setattr(module, name, nn.Parameter(weight.new_empty(0), requires_grad=False))
        return len(replaced)

    def _put(self, path: str, module: nn.Module) -> None:
        parent, _, name = path.rpartition(".")
        setattr(self.get_submodule(parent), name, module)
