"""What a handler may do to its worker: strategies of values, exceptions, and calls that no worker may end by."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable, PredictionException, UnreadablePayload
from tsctl.handlers.sdk.metrics import Dimension, MetricTypes

texts = st.text(st.characters(exclude_categories=()), max_size=12)  # with lone surrogates
_RAISED: tuple[type[BaseException], ...] = (
    ValueError, RecursionError, MemoryError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError,
)  # fmt: skip
_METHODS = (
    "__str__", "__repr__", "__bool__", "__len__", "__iter__", "__eq__", "__hash__", "__format__", "__float__",
    "__index__", "__getattr__", "__lt__", "encode", "isascii", "items", "keys", "lower", "close",
)  # fmt: skip


def _raising(error: type[BaseException]) -> Callable[..., Any]:
    def method(*_: Any, **__: Any) -> Any:
        raise error("from a method")

    return method


def _returning(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _hostile(base: type, methods: dict[str, Callable[..., Any]], *given: Any, own_class: bool) -> Any:
    members: dict[str, Any] = dict(methods)
    if own_class:
        members["__class__"] = property(_raising(ValueError))
    made = type("Hostile", (base,), members)
    return base.__new__(made, *given) if base is not object else object.__new__(made)


_methods = st.dictionaries(
    st.sampled_from(_METHODS),
    st.sampled_from(_RAISED).map(_raising) | st.sampled_from([5, None, "x", b"x", "\ud83c"]).map(_returning),
    max_size=4,
)
_bases = st.sampled_from(
    [(object,), (str, "a"), (str, "\udcff"), (int, 200), (float, 0.5), (bytes, b"x"), (list,), (dict,)]
)
objects = st.builds(
    lambda base, methods, own: _hostile(base[0], methods, *base[1:], own_class=own), _bases, _methods, st.booleans()
)


def _nested(levels: int) -> list[Any]:
    made: list[Any] = []
    for _ in range(levels):
        made = [made]
    return made


scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | texts
    | st.binary(max_size=5)
    | st.floats()
    | st.sampled_from([10**400, 10**5000, -1, 200, 404, 599, 600, 2**63, {1, 2}, "\r\nX: y", "x" * 70_000, 1j, ...])
)
values = st.one_of(
    scalars,
    objects,
    st.lists(scalars | objects, max_size=3),
    st.dictionaries(texts, scalars | objects, max_size=2),
    st.sampled_from([10, 2_000]).map(_nested),
)


class _NotOurs(PredictionException):
    def __init__(self) -> None:
        pass


class _Meta(type):
    __name__ = property(_raising(ValueError))


class _Nameless(Exception, metaclass=_Meta):
    pass


class _NoTraceback(Exception):
    __traceback__ = property(_raising(KeyboardInterrupt))
    __cause__ = property(_raising(ValueError))


def _deep_group(depth: int = 500) -> BaseException:
    error: BaseException = ValueError("\ud83c")
    for _ in range(depth):
        error = BaseExceptionGroup("\udcff", [error])
    return error


def _circle() -> BaseException:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


def _noted(note: Any) -> BaseException:
    error = ValueError("noted")
    error.__notes__ = note
    return error


def _syntax(file: Any, line: Any) -> BaseException:
    error = SyntaxError("bad")
    error.filename, error.lineno, error.text = file, line, "\ud83c"
    return error


def _prediction(message: Any, code: Any) -> BaseException:
    return PredictionException(message, code)


_MAKERS: list[Callable[[], BaseException]] = [_NotOurs, _Nameless, _NoTraceback, _deep_group, _circle]
exceptions: st.SearchStrategy[BaseException] = st.one_of(
    st.builds(
        lambda kind, value: kind(value),
        st.sampled_from([*_RAISED, InvalidResult, NotSerialisable, UnreadablePayload, KeyError, StopIteration]),
        values,
    ),
    st.builds(_prediction, values, values),
    st.builds(lambda methods: _hostile(Exception, methods, own_class=True), _methods),
    st.builds(_noted, values),
    st.builds(_syntax, values, values),
    st.builds(lambda text: OSError(2, text, text), texts),
    st.sampled_from(_MAKERS).map(lambda make: make()),
)
Act = Callable[[list[Any], Context], Any]


def rename(data: Any, context: Context) -> Any:
    """Set what is no text as the model's name."""
    setattr(context, "model_name", ...)  # noqa: B010 - of another type
    return ["renamed"] * len(data)


def _recurse(data: Any, context: Context) -> Any:
    return _recurse(data, context)


def _acts(draw: st.DrawFn) -> Act:
    a, b, c, d = (draw(values) for _ in range(4))
    calls: list[Act] = [
        lambda data, context: context.set_response_header(0, a, b),
        lambda data, context: context.set_response_content_type(0, a),
        lambda data, context: context.set_response_status(a, b, 0),
        lambda data, context: context.set_all_response_status(a, b),
        lambda data, context: context.metrics.add_metric(a, b, c, None, [Dimension(c, d)], MetricTypes.GAUGE),
        lambda data, context: context.metrics.add_counter("known", a, None, [Dimension("name", b)]),
        lambda data, context: context.metrics.add_time("time", a, b),
        lambda data, context: context.metrics.add_error(a, b),
        lambda data, context: print(a, b),
        lambda data, context: logging.getLogger("handler").warning(a, b),
        lambda data, context: context.send_pieces and context.send_pieces([a] * len(data)),
        lambda data, context: setattr(context, "request_processor", a),
        lambda data, context: setattr(context, "model_name", a),
        lambda data, context: setattr(context, "stopping_criteria", a),
        lambda data, context: setattr(context, "stopping_criteria", [lambda item: b] * len(data)),
        lambda data, context: setattr(context._row(0), "_response_header", a),
    ]  # fmt: skip
    return draw(st.sampled_from(calls))


def _raise(error: BaseException) -> Act:
    def act(data: Any, context: Context) -> Any:
        raise error

    return act


@st.composite
def handlers(draw: st.DrawFn) -> Act:
    """What one call of a handler does: some calls of the context, then a result or an exception."""
    before = [_acts(draw) for _ in range(draw(st.integers(0, 3)))]
    ends: Act = draw(
        exceptions.map(_raise)
        | values.map(lambda value: lambda data, context: value)
        | st.just(_recurse)
        | (values | exceptions).map(lambda item: lambda data, context: [item] * len(data))
    )

    def act(data: list[Any], context: Context) -> Any:
        for each in before:
            each(data, context)
        return ends(data, context)

    return act
