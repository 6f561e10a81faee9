"""`torch.compile` with frozen weights, and every batch size compiled before the worker is ready.

The batch is a dynamic dimension: one compilation serves every size from two on, another a batch of
one. What is compiled is kept in the directory that TORCHINDUCTOR_CACHE_DIR names, and found again by
the next worker and after a restart; the daemon sets it to `compiled` in its state directory.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from handlers.optimize.trees import map_tensors

COMPILERS = ("g++", "clang++")


def find_compiler() -> str | None:
    """Find the C++ compiler: what CXX names, else g++, else clang++."""
    named = os.environ.get("CXX")
    return next((name for name in ((named,) if named else COMPILERS) if shutil.which(name.split()[0])), None)


def refusal(model: Any, device: torch.device) -> str:
    """Say why a model cannot be compiled here; empty if it can be."""
    if isinstance(model, torch.jit.ScriptModule):
        return "the model is TorchScript, which torch.compile does not take"
    if device.type == "cuda":
        there = importlib.util.find_spec("triton") is not None
        return "" if there else "triton is not installed, which torch.compile needs on a GPU"
    if find_compiler() is None:
        named = os.environ.get("CXX")
        missing = f"`{named}`, which CXX names, is not there" if named else "neither g++ nor clang++ is installed"
        return f"torch.compile needs a C++ compiler, and {missing}"
    return ""


def compiled(model: nn.Module, device: torch.device) -> Any:
    """Wrap a model; it is compiled when it first runs."""
    import torch._inductor.config as inductor

    compiler = find_compiler()
    if device.type == "cpu" and compiler:
        inductor.cpp.cxx = (None, compiler)
    # Frozen weights are constants: convolutions take in what follows them, and are packed for oneDNN.
    # The daemon changes a worker's threads when it scales: their number must not be in the code.
    return torch.compile(model, options={"freezing": True, "cpp.dynamic_threads": True})


def compile_sizes(model: Any, run: Callable[[int], Any], batch_size: int) -> list[int]:
    """Run a compiled model until no batch size up to `batch_size` needs a compilation any more.

    Args:
        run: runs the model on a batch of so many rows.

    Returns:
        The sizes that were run.
    """
    import torch._dynamo
    from torch._dynamo.utils import counters

    config = torch._dynamo.config
    # Beyond its limit torch.compile silently runs what is not compiled.
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
    # All that is left to find: a model that is compiled anew for each size needs every one of them.
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

    def mark(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() and tensor.shape[0] > 1:
            maybe_mark_dynamic(tensor, 0)
        return tensor

    map_tensors((args, kwargs), mark)
