"""The input that a handler gives its model for a batch, and the model's output."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tsctl.handlers.optimize.wrapper import ModelWrapper


class NotExportable(Exception):
    """The model cannot be kept as libraries; the message gives the reason."""


class Recorded(NamedTuple):
    """One call of a model: the tensors of its arguments and of its output, and how these are nested."""

    inputs: Sequence[torch.Tensor]
    input_spec: pytree.TreeSpec
    outputs: Sequence[torch.Tensor]
    output_spec: pytree.TreeSpec


class _Recorder(ModelWrapper):
    """Notes all calls of a model."""

    within = "recorded"

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.recorded = model
        self.calls: list[tuple[Any, Any]] = []

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = self.recorded(*args, **kwargs)
        self.calls.append(((args, kwargs), output))
        return output


def record(handler: Any, run: Callable[[], object]) -> Recorded:
    """Return the call of a handler's model in a batch.

    Args:
        run: runs the handler on the batch.

    Raises:
        NotExportable: the model is not called just once, takes or returns other things than tensors, or changes itself.
    """
    model = handler.model
    recorder = handler.model = _Recorder(model).eval()
    before = _traces(model)
    try:
        run()
    finally:
        handler.model = model
    if _traces(model) != before:
        raise NotExportable("the model changes its weights or draws random numbers")
    if len(recorder.calls) != 1:
        raise NotExportable(f"the handler calls the model {len(recorder.calls)} times for a batch")
    ((given, output),) = recorder.calls
    inputs, input_spec = pytree.tree_flatten(given)
    outputs, output_spec = pytree.tree_flatten(output)
    for kind, leaves in (("takes", inputs), ("returns", outputs)):
        others = [type(each).__name__ for each in leaves if type(each) is not torch.Tensor]
        if others or not leaves:
            raise NotExportable(f"the model {kind} {others[0] if others else 'nothing'}, and not only tensors")
    if not all(tensor.is_contiguous() for tensor in inputs):
        raise NotExportable("the model takes tensors that are not contiguous")
    # Outside inference mode a copy is an ordinary tensor.
    return Recorded([tensor.clone() for tensor in inputs], input_spec, list(outputs), output_spec)


def _traces(model: nn.Module) -> tuple[object, ...]:
    """Return what a call that leaves traces changes."""
    values = [*model.parameters(), *model.buffers()]
    versions = [None if value.is_inference() else value._version for value in values]
    return (versions, torch.get_rng_state().tolist())
