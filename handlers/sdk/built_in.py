"""The tensors of the built-in handlers: one input, `data`, and their answer; and what an archive declares instead."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tsctl.handlers import wire
from tsctl.handlers.names import BUILT_IN
from tsctl.handlers.sdk.errors import HandlerError

# Handler → its input's kind. `vision_handler` and `text_handler` are bases, and serve nothing by themselves; what
# `vllm_handler` takes is a request of OpenAI's API.
_KINDS: dict[str, wire.InputKind] = {
    "base_handler": "array",
    "image_classifier": "image",
    "object_detector": "image",
    "image_segmenter": "image",
    "text_classifier": "text",
}
_Known = TypeVar("_Known")
_READS = {"handle", "preprocess", "prepare", "decode_row"}
_SEES_BATCHES = {"inference", "postprocess"}
_INPUT = "data"
_NAMES = (_INPUT, "body")  # under which a built-in handler finds its input


def declaration_of(handler: str) -> wire.Declared | None:
    """Return what a built-in handler takes; None for any other."""
    kind = _KINDS.get(handler)
    return None if kind is None else wire.Declared([wire.Input(_INPUT, kind)], batches=True, built_in=True)


def declaration_inherited(handler_class: type) -> wire.Declared | None:
    """Return what a user's subclass of a built-in handler takes, if it reads requests as that does; None for others.

    `batches`: it takes whole batches as that does, since it has none of the steps of its own that see them.
    """
    name, own = nearest(handler_class, {place: name for name, place in BUILT_IN.items()}) or ("", set())
    declared = declaration_of(name)
    if declared is None or own & _READS:
        return None
    declared.batches = not own & _SEES_BATCHES
    return declared


def nearest(handler_class: type, known: Mapping[tuple[str, str], _Known]) -> tuple[_Known, set[str]] | None:
    """Return what is known of a class or of its nearest base, and the members of the classes below that base.

    Args:
        known: by module and qualified name.
    """
    for index, each in enumerate(handler_class.__mro__):
        found = known.get((each.__module__, each.__qualname__))
        if found is not None:
            return found, {member for other in handler_class.__mro__[:index] for member in vars(other)}
    return None


def declaration_of_model(declared: wire.Declared, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> wire.Declared:
    """Return a built-in handler's declaration with the inputs and outputs that its model's file tells, if it does.

    Args:
        inputs, outputs: each with a name, a datatype and the shape of a row (handlers/builtin/support/model_inputs.py).
    """
    if not inputs:
        return declared
    return wire.Declared(_tensors(inputs), declared.batches, built_in=True, outputs=_tensors(outputs))


def _tensors(told: Sequence[Any]) -> list[wire.Input]:
    return [wire.Input(each.name, "array", "", each.datatype, [*(each.shape or ())]) for each in told]


def declaration_under(declared: wire.Declared, inputs: Sequence[Mapping[str, Any]]) -> wire.Declared | None:
    """Return a built-in handler's declaration where the archive declares `inputs`, which win.

    Args:
        inputs: as the daemon has checked them: each with a name and a datatype.

    Returns:
        None if the handler gets arrays.

    Raises:
        HandlerError: the handler would not find its input, or could not read it.
    """
    kind = declared.inputs[0].kind
    datatypes = {str(each.get("name")): each.get("datatype") for each in inputs}
    name = next((name for name in _NAMES if name in datatypes), None)
    if name is None:
        raise HandlerError(
            f"model-config.yaml declares the inputs {', '.join(f'`{each}`' for each in datatypes)}, and the built-in"
            f" handler takes `{_INPUT}`. Rename one of them, or remove `inputs`"
        )
    is_bytes = datatypes[name] == "BYTES"
    if is_bytes == (kind == "array") and kind != "image":
        raise _contradiction(name, datatypes[name], "the built-in handler's input is", numbers=kind != "text")
    if not is_bytes:
        return None
    kinds = {each: kind if each == name else "bytes" if datatypes[each] == "BYTES" else "array" for each in datatypes}
    return wire.Declared([wire.Input(each, kinds[each]) for each in datatypes], batches=True, built_in=True)


def check_inputs(declared: wire.Declared, inputs: Sequence[Mapping[str, Any]]) -> None:
    """Check that the archive declares what a typed handler's function takes.

    Args:
        inputs: as the daemon has checked them: each with a name and a datatype.

    Raises:
        HandlerError: an input has no argument, or its datatype is none that the argument is made of.
    """
    arguments = {each.name: each for each in declared.inputs}
    for each in inputs:
        name, datatype = str(each.get("name")), each.get("datatype")
        argument = arguments.get(name)
        if argument is None:
            raise HandlerError(
                f"model-config.yaml declares the input `{name}`, and the function has no such argument: it takes"
                f" {', '.join(f'`{known}`' for known in arguments) or 'none'}. Rename one of them, or remove `inputs`"
            )
        numbers = argument.kind in ("array", "tensor")
        if numbers == (datatype == "BYTES"):
            made = f"the function's argument `{name}: {argument.annotation}` is made of"
            raise _contradiction(name, datatype, made, numbers=numbers)


def _contradiction(name: str, datatype: object, takes: str, *, numbers: bool) -> HandlerError:
    fits = "a datatype of numbers" if numbers else "BYTES of shape [1]"
    return HandlerError(
        f"model-config.yaml declares the input `{name}` as {datatype}, and {takes} {fits}. Correct the datatype, or"
        " remove `inputs`"
    )
