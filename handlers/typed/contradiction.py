"""Declared tensors (`inputs` in model-config.yaml) against the arguments of a typed handler."""

from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.wire import Declared

_ARRAYS = ("array", "tensor")


def check_inputs(declared: Declared, inputs: Sequence[Mapping[str, Any]]) -> None:
    """Check that the archive declares what the function takes.

    Args:
        inputs: as the daemon has checked them: each with a name and a datatype.

    Raises:
        HandlerError: an input has no argument, or its datatype is none that the argument is made of.
    """
    kinds = {each.name: each for each in declared.inputs}
    for each in inputs:
        name, datatype = each.get("name"), each.get("datatype")
        argument = kinds.get(str(name))
        if argument is None:
            raise HandlerError(
                f"model-config.yaml declares the input `{name}`, and the function has no such argument: it takes"
                f" {', '.join(f'`{known}`' for known in kinds) or 'none'}. Rename one of them, or remove `inputs`"
            )
        if (argument.kind in _ARRAYS) == (datatype == "BYTES"):
            fits = "a datatype of numbers" if argument.kind in _ARRAYS else "BYTES of shape [1]"
            raise HandlerError(
                f"model-config.yaml declares the input `{name}` as {datatype}, and the function's argument"
                f" `{name}: {argument.annotation}` is made of {fits}. Correct the datatype, or remove `inputs`"
            )
