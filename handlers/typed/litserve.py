"""A class in the form of LitServe's API, as a typed handler: `setup`, `decode_request`, `predict`, `encode_response`.

LitServe calls them so: `setup(device)` once in each worker; then for each request `decode_request`, `predict` with what
that returned, and `encode_response`. A generator `predict` answers in pieces, which a generator `encode_response` may
change; coroutines are awaited. A method that takes `context` gets a dict of the request's own.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

_STEPS = ("decode_request", "predict", "encode_response")  # each takes what the one before has returned


def has_litserves_form(instance: object) -> bool:
    """Return whether an object with a method `predict` has methods that only LitServe's form has."""
    return any(callable(getattr(instance, name, None)) for name in _STEPS if name != "predict")


def as_litserve_calls(instance: Any) -> Callable[..., Any]:
    """Return a function of one request, which calls the methods of LitServe's form one after the other."""
    steps = [each for name in _STEPS if callable(each := getattr(instance, name, None))]
    in_pieces = any(map(inspect.isgeneratorfunction, steps))
    in_pieces_later = any(map(inspect.isasyncgenfunction, steps))
    waits = any(map(inspect.iscoroutinefunction, steps))
    calls = [_with_context(each) for each in steps]

    def answer(request: Any) -> Any:
        context: dict[str, Any] = {}
        for call in calls:
            request = call(request, context)
        return request

    async def answer_later(request: Any) -> Any:
        context: dict[str, Any] = {}
        for call in calls:
            request = call(request, context)
            if inspect.isawaitable(request):
                request = await request
        return request

    def answer_in_pieces(request: Any) -> Iterator[Any]:
        yield from answer(request)

    async def answer_in_pieces_later(request: Any) -> AsyncIterator[Any]:
        value = await answer_later(request)
        if hasattr(value, "__aiter__"):
            async for piece in value:
                yield piece
        else:
            for piece in value:
                yield piece

    made: Callable[..., Any] = answer
    if in_pieces_later or (in_pieces and waits):
        made = answer_in_pieces_later
    elif in_pieces:
        made = answer_in_pieces
    elif waits:
        made = answer_later
    made.__name__ = "predict"
    made.__annotations__ = {"request": _hint(getattr(instance, _STEPS[0], None))}
    return made


def _with_context(method: Callable[..., Any]) -> Callable[[Any, dict[str, Any]], Any]:
    """Return the method as a function of a value and the context of the request, which few take."""
    if "context" in inspect.signature(method).parameters:
        return lambda value, context: method(value, context=context)
    return lambda value, context: method(value)


def _hint(decode: Any) -> Any:
    """Return the type hint of what `decode_request` takes; Any without one."""
    if not callable(decode):
        return Any
    first = next(iter(inspect.signature(decode, eval_str=True).parameters.values()), None)
    return Any if first is None or first.annotation is first.empty else first.annotation
