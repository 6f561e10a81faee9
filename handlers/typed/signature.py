"""The signature of a typed function: what each parameter takes, and how the function is called.

def predict(texts: list[str]) -> list[dict]    one call for a batch
def predict(text: str) -> dict                 one call for each row
async def predict(text: str) -> dict           one call for each row, at the same time
def predict(text: str): yield …                an answer in pieces
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, get_args, get_origin

from tsctl.handlers import wire
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.places import place_of
from tsctl.handlers.typed.annotations import LISTS, Target, meant_by, target_of, written

_CONTEXT = "context"
_TORCHSERVES_CONTEXT = ("context", "ctx", "")  # without underscores


class Argument(NamedTuple):
    """One parameter that a request fills.

    Attributes:
        required: the parameter has no default, and its type does not allow None.
        has_default: without its part the parameter is left out of the call.
    """

    name: str
    target: Target
    annotation: str
    required: bool
    has_default: bool
    positional: bool

    @property
    def single_number(self) -> str:
        """A sentence on a parameter that takes a number of each request, and looks like a list; empty for others."""
        if self.target.type not in (int, float, bool) or self.annotation == (one := written(self.target.type)):
            return ""
        return (
            f"`{self.name}: {self.annotation}` is a batch, with one {one} for each request; for a list in each request"
            f" write `{self.name}: list[{self.annotation}]`"
        )


class Signature(NamedTuple):
    """How a typed function is called.

    Attributes:
        batches: the function takes lists.
        context: the parameter that takes the context; empty if there is none.
        returns: the return annotation, `inspect.Signature.empty` if there is none.
        streams: the function is a generator.
        waits: the function is a coroutine, or an asynchronous generator.
    """

    function: str
    arguments: list[Argument]
    batches: bool
    context: str
    returns: Any
    streams: bool
    waits: bool

    def declared(self, batch_size: int) -> wire.Declared:
        """Return the declaration for the daemon."""
        inputs = [wire.Input(each.name, each.target.kind, each.annotation) for each in self.arguments]
        output = "" if self.returns is inspect.Signature.empty else written(self.returns)
        return wire.Declared(inputs, self.batches, batch_size, self.streams, output, waits=self.waits)


def signature_of(function: Callable[..., Any]) -> Signature | None:
    """Return the signature of a typed function; None for a function of TorchServe's form, or one without type hints.

    TorchServe's `handle(data, context)` stays what it is, also with hints such as `list[dict]` and `Context`.

    Raises:
        HandlerError: the function is called `predict`, or takes neither TorchServe's arguments nor typed ones.
    """
    if is_torchserve_form(function):
        return None
    try:
        return read_signature(function)
    except HandlerError as error:
        if getattr(function, "__name__", "") != "predict" and _takes_two(function):
            return None  # called as TorchServe does, whatever the names of its parameters
        raise HandlerError(f"{place_of(function)}{error}") from None


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read the type hints of a function or bound method.

    Raises:
        HandlerError: a required parameter has no annotation that can be decoded, or only some parameters take lists.
    """
    name = getattr(function, "__name__", type(function).__name__)
    found, context, lists = [], "", {}
    signature = _evaluated(function, name)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        annotation, has_default = parameter.annotation, parameter.default is not parameter.empty
        if parameter.name == _CONTEXT or getattr(annotation, "__name__", "") == "Context":
            context = parameter.name
            continue
        if annotation is parameter.empty:
            if has_default:
                continue
            raise HandlerError(
                f"`{name}` needs a type hint for `{parameter.name}`, such as `{parameter.name}: str`; or bytes,"
                " PIL.Image, tsctl.Audio, numpy.ndarray, torch.Tensor, or a type for JSON"
            )
        many = get_origin(annotation) in LISTS and bool(get_args(annotation))
        target = target_of(get_args(annotation)[0] if many else annotation)
        if target is None:
            if has_default:
                continue
            takes = f"`{name}` has a parameter `{parameter.name}: {written(annotation)}`"
            meant = meant_by(get_args(annotation)[0] if many else annotation)
            if meant:
                right = f"list[{meant}]" if many else meant
                raise HandlerError(f"{takes}, and that is a function, no type: write `{parameter.name}: {right}`")
            raise HandlerError(
                f"{takes}, and a request cannot be decoded to this type; use str, bytes, PIL.Image, tsctl.Audio,"
                " numpy.ndarray, torch.Tensor, or a type for JSON"
            )
        lists[parameter.name] = many
        required = not has_default and not target.optional
        positional = parameter.kind is parameter.POSITIONAL_ONLY
        found.append(Argument(parameter.name, target, written(annotation), required, has_default, positional))
    batches = any(lists.values())
    if batches:  # a single value with a default is a setting of the function, not an input
        found = [each for each in found if lists[each.name] or not each.has_default]
    alone = [each.name for each in found if lists[each.name] is not batches]
    if alone:
        raise HandlerError(
            f"`{name}` takes lists, and its parameter `{alone[0]}` is not one: either all parameters are lists, with"
            " one item for each row of a batch, or none is"
        )
    if not found:
        raise HandlerError(f"`{name}` has no parameter that a request could fill")
    streams = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    waits = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return Signature(name, found, batches, context, signature.return_annotation, streams, waits)


def is_torchserve_form(function: Callable[..., Any]) -> bool:
    """Return whether a function takes TorchServe's two arguments: the rows, as dicts, and the context."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    if len(parameters) < 2 or any(each.default is each.empty for each in parameters[2:] if each.kind < 2):
        return False
    rows, context = parameters[:2]
    if context.name.strip("_") not in _TORCHSERVES_CONTEXT and "Context" not in written(context.annotation):
        return False
    if getattr(function, "__name__", "") == "predict" and rows.annotation is not rows.empty:
        return False
    hint = "".join(written(rows.annotation).split()).replace("typing.", "").lower()
    beginnings = ("list[dict", "list[any", "list[mapping", "sequence[dict", "sequence[any", "sequence[mapping")
    return rows.annotation is rows.empty or hint in ("any", "list", "sequence") or hint.startswith(beginnings)


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _evaluated(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except Exception as error:
        raise HandlerError(f"the type hints of `{name}` cannot be evaluated: {error}") from error
