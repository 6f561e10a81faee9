"""The tensors that a model declares, by its archive or its handler, and whether a request fits them."""

from collections.abc import Sequence

from tsctl.daemon.api.tensors.forms import InferRequest, Tensor
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.model_settings.declarations import LONGEST_NAME, DeclaredTensor
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared

OUTPUT = "output"  # of typed and built-in handlers
OUTPUTS = (DeclaredTensor(OUTPUT, "BYTES", (1,)),)
ARRAYS = ("array", "tensor")  # kinds of arguments whose tensors are known only to the archive


def typed_inputs(declared: Declared) -> tuple[DeclaredTensor, ...]:
    """Return the arguments whose tensors are known: all but arrays of which the model's file tells nothing."""
    return tuple(
        DeclaredTensor(each.name, each.datatype, tuple(each.shape))
        if each.datatype
        else DeclaredTensor(each.name, "BYTES", (1,))
        for each in declared.inputs
        if each.datatype or each.kind not in ARRAYS
    )


def tensors_of(model: ModelVersion) -> tuple[Sequence[DeclaredTensor], Sequence[DeclaredTensor]]:
    """Return the known inputs and outputs of a version: its archive's, else its handler's, each where there are any."""
    inputs, outputs = model.settings.inputs, model.settings.outputs
    if model.declared is None:
        return inputs, outputs
    return inputs or typed_inputs(model.declared), outputs or file_outputs(model.declared) or OUTPUTS


def file_outputs(declared: Declared) -> tuple[DeclaredTensor, ...]:
    """Return the outputs that the model's file tells."""
    return tuple(DeclaredTensor(each.name, each.datatype, tuple(each.shape)) for each in declared.outputs)


def check_request(request: InferRequest, inputs: Sequence[DeclaredTensor], outputs: Sequence[DeclaredTensor]) -> None:
    """Check a request's tensors; that their bytes fit their shapes is checked where they are read.

    Args:
        outputs: the model's; empty if it declares none: then any output may be asked for.

    Raises:
        BadRequest: an input is unknown, missing, there twice, or not as declared; or an output is unknown.
    """
    declared = {each.name: each for each in inputs}
    seen: set[str] = set()
    for tensor in request.inputs:
        if tensor.name not in declared:
            raise BadRequest(f"Unknown input: {tensor.name[:LONGEST_NAME]}; the model takes {', '.join(declared)}.")
        if tensor.name in seen:
            raise BadRequest(f"Input {tensor.name} is given twice; send each input once.")
        seen.add(tensor.name)
        _check(tensor, declared[tensor.name])
    for each in inputs:
        if each.name not in seen and not each.optional:
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
