"""`torch.compile`, with every batch size compiled before the worker is ready.

    batches of the full size    a graph for this very shape: weights are constants, packed for oneDNN, and
                                convolutions take in what follows them
    batches of one              another
    all others                  one more, in which the batch is a dynamic dimension

Under load nearly all batches are full. ResNet-152 in bfloat16, batches of 8 on two threads of a Xeon with AMX: 176 ms
uncompiled, 143 ms in the dynamic graph, 108 ms in that of full batches.

Compiled code is cached in the directory TORCHINDUCTOR_CACHE_DIR, and reused by the next worker and after a restart; the
daemon sets the directory to `compiled` in its state directory. On a CPU the three graphs are libraries there, if the
model can be exported (packages). Otherwise torch.compile makes them: then, of a graph with packed weights, only the
machine code is cached, and torch rebuilds the rest, which takes 9 s for ResNet-152.
"""

import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.compiler import C_COMPILERS, COMPILERS, find_c_compiler, find_compiler
from tsctl.handlers.optimize.packages.package import Packages
from tsctl.handlers.optimize.trees import tensors_of
from tsctl.handlers.optimize.wrapper import ModelWrapper


def refusal(model: Any, device: torch.device) -> str:
    """Return why a model cannot be compiled here; empty if it can be."""
    while isinstance(model, ModelWrapper):  # bfloat16's
        model = getattr(model, model.within)
    if isinstance(model, torch.jit.ScriptModule):
        return "the model is TorchScript, which torch.compile does not take; archive its Python code and weights"
    if device.type == "cuda":
        if importlib.util.find_spec("triton") is None:
            return "triton is not installed, which torch.compile needs on a GPU"
        return "" if find_c_compiler() else _missing("C", "CC", C_COMPILERS)
    return "" if find_compiler() else _missing("C++", "CXX", COMPILERS)


def _missing(language: str, variable: str, names: Sequence[str]) -> str:
    named = os.environ.get(variable)
    missing = (
        f"`{named}`, which {variable} names, is not there" if named else f"none of {', '.join(names)} is installed"
    )
    return f"torch.compile needs a {language} compiler, and {missing}"


class Compiled(ModelWrapper):
    """A compiled model. Its other members are the model's own.

    Attributes:
        usual: serves inputs of any shape; compiled on first run.

    Args:
        packages: libraries that serve most inputs; torch.compile then waits for one that they do not serve.
    """

    within = "usual"

    def __init__(self, model: nn.Module, device: torch.device, packages: Packages | None = None) -> None:
        super().__init__()
        self.usual: Any = model
        self._device = device
        self._packages = packages
        self._full_shapes: list[torch.Size] | None = None
        self._has_graphs = False
        if packages is None:
            self._make_graphs()

    def _make_graphs(self) -> None:
        import torch._inductor.config as inductor

        model = self.usual
        compiler = find_compiler()
        if self._device.type == "cpu" and compiler:
            inductor.cpp.cxx = (None, compiler)
        # The daemon changes a worker's threads when scaling: their number must not be in the code, nor among
        # torch.compile's guards.
        options: dict[str, Any] = {"cpp.dynamic_threads": True}
        if hasattr(torch.compiler, "skip_guard_on_inbuilt_nn_modules_unsafe"):  # as old as the option
            options["guard_filter_fn"] = _ignore_threads
        self.usual = torch.compile(model, options=options.copy())  # a copy: torch modifies the dict
        full = torch.compile(model, dynamic=False, options=options | {"freezing": True})
        vars(self)["_full"] = full  # not a submodule: its parameters are registered already
        self._has_graphs = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._packages is not None:
            output = self._packages.run(args, kwargs)
            if output is not None:
                return output[0]
            if not self._has_graphs:
                self._make_graphs()
        if self._full_shapes is not None and _shapes((args, kwargs)) == self._full_shapes:
            return self._full(*args, **kwargs)
        return self.usual(*args, **kwargs)

    def compile_full(self, run: Callable[[], Any]) -> float:
        """Compile the graph for full batches, which serves all inputs of the same shapes from now on.

        Args:
            run: runs this model on a full batch, and returns the output.

        Returns:
            The drift between its output and the usual graph's (drift.py).
        """
        import torch._inductor.config as inductor

        seen: list[list[torch.Size]] = []
        looking = self.register_forward_pre_hook(
            lambda module, args, kwargs: seen.append(_shapes((args, kwargs))), with_kwargs=True
        )
        try:
            usual = run()
        finally:
            looking.remove()
        if len(seen) != 1:  # the handler calls the model several times for a batch, or not at all
            return 0.0
        (self._full_shapes,) = seen
        # An option of torch.compile alone comes too late: when a graph is traced, weights become its inputs, unless the
        # setting is already active.
        with inductor.patch(freezing=True):
            return drift(usual, run())


def _ignore_threads(guards: Any) -> list[bool]:
    """Keep all guards but the one on the number of threads and other global state, constant within a handler."""
    return [guard.guard_type != "GLOBAL_STATE" for guard in guards]


def _shapes(inputs: Any) -> list[torch.Size]:
    """Return the shapes of all tensors in a structure, in order."""
    return [tensor.shape for tensor in tensors_of(inputs)]


def compile_sizes(model: Any, run: Callable[[int], Any], batch_size: int) -> list[int]:
    """Run a compiled model until no batch size up to `batch_size` needs a compilation any more.

    Args:
        run: runs the model on a batch of so many rows.

    Returns:
        The batch sizes that were run.
    """
    import torch._dynamo
    from torch._dynamo.utils import counters

    config = torch._dynamo.config
    # Beyond its limit torch.compile silently runs uncompiled code.
    config.recompile_limit = max(config.recompile_limit, 2 * batch_size + 8)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, 4 * config.recompile_limit)
    marking = model.register_forward_pre_hook(_mark_batch, with_kwargs=True)
    try:
        done = []
        for size in sorted({1, min(2, batch_size)}):
            run(size)
            done.append(size)
    finally:
        marking.remove()
    # If these sizes compile anew, the model is compiled for each size, and all sizes must run.
    before = counters["stats"]["unique_graphs"]
    for size in dict.fromkeys((batch_size, min(3, batch_size))):
        run(size)
        done.append(size)
    if counters["stats"]["unique_graphs"] > before:
        for size in range(1, batch_size + 1):
            run(size)
            done.append(size)
    return done


def _mark_batch(module: nn.Module, args: Any, kwargs: Any) -> None:  # noqa: ARG001 - a hook's signature
    from torch._dynamo import maybe_mark_dynamic

    for tensor in tensors_of((args, kwargs)):
        if tensor.dim() and tensor.shape[0] > 1:
            maybe_mark_dynamic(tensor, 0)
