"""Whether a request fits the tensors that its model declares."""

from collections.abc import Sequence

from daemon.api.tensors.forms import InferRequest, Tensor
from daemon.core.errors import BadRequest
from daemon.model_settings.declarations import LONGEST_NAME, DeclaredTensor


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
