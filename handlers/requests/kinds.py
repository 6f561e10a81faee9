"""The kind of each request of a batch: a prediction, an explanation or a description.

The daemon sets the headers `explain` and `describe`, as TorchServe does. TorchServe looks at the first request only
and runs the whole batch as that kind; here a mixed batch is split.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from tsctl.handlers.requests.rows import items_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import UnreadableRows
from tsctl.handlers.sdk.plain_model import with_plain_model


class Kind(Enum):
    PREDICT = auto()
    EXPLAIN = auto()
    DESCRIBE = auto()


def kind_of(headers: Mapping[str, Any]) -> Kind:
    """Return one request's kind, from its headers."""
    if headers.get("describe") == "True":
        return Kind.DESCRIBE
    return Kind.EXPLAIN if headers.get("explain") == "True" else Kind.PREDICT


def has_requests(context: Any) -> bool:
    """Return whether a context has requests; a context of users' own, or of their tests, has none."""
    return bool(getattr(context, "request_processor", None))


def kinds_of(context: Any, rows: int) -> list[Kind]:
    """Return the kind of each row.

    A handler may call `super().handle` with more or fewer rows than requests; rows and requests then cannot be matched,
    and all rows have the kind of the first request. Without requests (a user's test, or a context of their own) all
    rows are predictions.
    """
    if not has_requests(context):
        return [Kind.PREDICT] * rows
    kinds = [kind_of(request.get_request_properties()) for request in context.request_processor]
    return kinds if len(kinds) == rows else kinds[:1] * rows


def answer(handler: Any, data: Any, context: Any, predict: Callable[[list[Any]], Any]) -> Any:
    """Run a batch through a handler, each row as its kind.

    Args:
        data: the rows; a list, or whatever a handler's own `handle` has made of it.
        predict: runs the stages on rows that ask for predictions.

    Returns:
        The result of `predict`, if all rows are predictions. Otherwise one item for each row, in order; a failed
        explanation is an exception in its place, and so are the predictions if they fail.
    """
    handler.context = context
    kinds = kinds_of(context, len(data))
    if all(kind is Kind.PREDICT for kind in kinds):
        return predict(data)
    return _answer_apart(handler, data, context, kinds, predict)


def _answer_apart(
    handler: Any, data: Sequence[Any], context: Context, kinds: Sequence[Kind], predict: Callable[[list[Any]], Any]
) -> list[Any]:
    def explain(rows: list[Any]) -> Any:
        with with_plain_model(handler):
            return handler.explain_handle(handler.preprocess(rows), rows)

    def describe(rows: list[Any]) -> Any:  # noqa: ARG001 - a description is not about a row
        return [handler.describe_handle()]

    # Predictions run together, explanations alone: each has its own target, and users' `get_insights` take one row.
    asked = {Kind.PREDICT: predict, Kind.EXPLAIN: explain, Kind.DESCRIBE: describe}
    parts = [([index for index, kind in enumerate(kinds) if kind is Kind.PREDICT], predict)]
    parts += [([index], asked[kind]) for index, kind in enumerate(kinds) if kind is not Kind.PREDICT]
    items: dict[int, Any] = {}
    for rows, run in parts:
        if rows:
            part = answer_part(run, [data[index] for index in rows], context, rows)
            items.update(zip(rows, part, strict=True))
    return [items[index] for index in range(len(data))]


def answer_part(run: Callable[[list[Any]], Any], data: list[Any], context: Context, rows: Sequence[int]) -> list[Any]:
    """Return the items of some rows of a batch; an exception in the place of each of them, if they fail.

    Args:
        rows: their indices, for which the context is narrowed.

    Raises:
        UnreadableRows: of the batch.
    """
    try:
        # More rows than requests: see `kinds_of`.
        if not has_requests(context) or len(context.request_ids) <= max(rows):
            return items_of(run(data), len(data))
        with context.selected(rows):
            return items_of(run(data), len(data))
    except UnreadableRows as error:
        raise UnreadableRows({rows[index]: why for index, why in error.rows.items()}) from error
    except (Exception, SystemExit) as error:  # noqa: BLE001 - user code; the other rows still get an answer
        return [error] * len(data)
