"""Whether a request fits the tensors that its model declares."""

from collections.abc import Sequence

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.tensors.forms import InferRequest, Tensor
from tsctl.daemon.model_settings.declarations import LONGEST_NAME, DeclaredTensor
from tsctl.handlers.wire import Declared


def check_request(request: InferRequest, inputs: Sequence[DeclaredTensor], outputs: Sequence[DeclaredTensor]) -> None:
    """Check a request's tensors; that their bytes fit their shapes is checked where they are read.

    Args:
        outputs: the model's; empty if it declares none: then any output may be asked for.

    Raises:
        BadRequest: an input is unknown, missing, or not as declared; or an output is unknown.
    """
    declared = {each.name: each for each in inputs}
    for tensor in request.inputs:
        if tensor.name not in declared:
            raise BadRequest(f"Unknown input: {tensor.name[:LONGEST_NAME]}; the model takes {', '.join(declared)}.")
        _check(tensor, declared[tensor.name])
    names = {each.name for each in request.inputs}
    for each in inputs:
        if each.name not in names and not each.optional:
            raise BadRequest(f"Input {each.name} is missing: the model takes it as {_text(each)}.")
    check_outputs(request, outputs)


def check_datatypes(request: InferRequest, declared: Declared) -> None:
    """Check that the inputs have the datatypes that the model's file tells; the worker checks their shapes.

    Raises:
        BadRequest: one has another: a conversion could lose digits.
    """
    told = {each.name: each.datatype for each in declared.inputs}
    for tensor in request.inputs:
        wanted = told.get(tensor.name, next(iter(told.values())) if len(told) == 1 else "")
        if wanted and tensor.datatype != wanted:
            raise BadRequest(f"Input {tensor.name} is {tensor.datatype}; the model takes {wanted}.")


def check_outputs(request: InferRequest, outputs: Sequence[DeclaredTensor]) -> None:
    """Check that the model has the outputs that a request asks for; `outputs` and errors as in `check_request`."""
    names = [each.name for each in outputs]
    for wanted in request.outputs:
        if names and wanted.name not in names:
            raise BadRequest(f"Unknown output: {wanted.name[:LONGEST_NAME]}; the model returns {', '.join(names)}.")


def _check(tensor: Tensor, declared: DeclaredTensor) -> None:
    fits = len(tensor.shape) == len(declared.shape) and all(
        wanted in (-1, size) for size, wanted in zip(tensor.shape, declared.shape, strict=True)
    )
    if tensor.datatype != declared.datatype or not fits:
        found = f"{tensor.datatype} of shape {list(tensor.shape)}"
        raise BadRequest(f"Input {tensor.name} is {found}; the model takes {_text(declared)}.")


def _text(declared: DeclaredTensor) -> str:
    return f"{declared.datatype} of shape {list(declared.shape)}"
