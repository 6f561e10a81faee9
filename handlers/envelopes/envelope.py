"""`Envelope`: open each request into rows, run the handler once on the rows of the whole batch, seal the responses.

    requests      {"instances": [a, b]}      {"instances": [c]}
    rows                    a   b                    c              one call of the handler
    items                   A   B                    C
    answers       {"predictions": [A, B]}    {"predictions": [C]}

TorchServe keeps per-request state on the envelope or the context, so a batch of two gets wrong responses or none; here
the state is kept with the request.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from tsctl.handlers.requests.kinds import Kind, has_requests, kinds_of
from tsctl.handlers.requests.rows import items_of, value_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import InvalidResult, NotSerialisable, UnreadablePayload, UnreadableRows

Handle = Callable[[Any, Context], Any]


@dataclass
class Opened:
    """A request's rows, and the state its envelope needs to seal the response."""

    rows: list[Any]
    memory: Any = None
    sealed: bool = True  # False: the handler's item is sent unchanged


class Envelope(ABC):
    """Wraps a handler's `handle`."""

    def __init__(self, handle_fn: Handle) -> None:
        self._handle = handle_fn

    @abstractmethod
    def open(self, row: Any) -> Opened:
        """Split a request into rows.

        Raises:
            UnreadablePayload: the request is not in this envelope's format.
        """

    @abstractmethod
    def seal(self, request: Opened, items: list[Any], context: Context) -> Any:
        """Build a request's response.

        Args:
            items: one for each row of the request.
            context: row 0 is the request.

        Raises:
            NotSerialisable: the envelope cannot hold an item.
        """

    def handle(self, data: Any, context: Context) -> Any:
        """Answer a batch: return one item for each request.

        Raises:
            UnreadableRows: some requests are unreadable.
            InvalidResult: the handler did not return one item for each row.
        """
        if data is None:  # the initialization of a function handler
            return self._handle(data, context)
        requests = self._open_all(data, context)
        owners = [index for index, request in enumerate(requests) for _ in request.rows]
        items = self._run([row for request in requests for row in request.rows], owners, context)
        if len(requests) > 1:
            items_of(items, len(owners))
        elif not isinstance(items, list):
            raise InvalidResult(f"Invalid model predict output: a list was expected, not {type(items).__name__}.")
        answers = []
        for index, request in enumerate(requests):
            # A request alone in its batch may get more or fewer items than it has rows.
            count = len(request.rows) if len(requests) > 1 else len(items)
            own, items = items[:count], items[count:]
            with _selected(context, [index]):
                answers.append(self._answer(request, own, context))
        return answers

    def _open_all(self, data: list[Any], context: Context) -> list[Opened]:
        opened, unreadable = [], {}
        for index, (row, kind) in enumerate(zip(data, kinds_of(context, len(data)), strict=True)):
            try:
                if kind is Kind.DESCRIBE:
                    opened.append(Opened([row], sealed=False))
                else:
                    opened.append(row if isinstance(row, Opened) else self.open(row))
            except UnreadablePayload as error:
                unreadable[index] = error
        if unreadable:
            raise UnreadableRows(unreadable)
        return opened

    def _run(self, rows: list[Any], owners: list[int], context: Context) -> Any:
        if not rows:
            return []
        try:
            with _selected(context, owners):
                return self._handle(rows, context)
        except UnreadableRows as error:
            raise UnreadableRows({owners[index]: why for index, why in error.rows.items()}) from error

    def _answer(self, request: Opened, items: list[Any], context: Context) -> Any:
        failed = [item for item in items if isinstance(item, BaseException)]
        if failed:
            return failed[0]
        if not request.sealed:
            return items[0]
        try:
            return self.seal(request, items, context)
        except NotSerialisable as error:
            return error


def _selected(context: Context, rows: Sequence[int]) -> AbstractContextManager[None]:
    """Map rows to the context's requests, if it has some."""
    return context.selected(rows) if has_requests(context) else nullcontext()


def object_of(row: Any) -> Mapping[str, Any]:
    """Return a request's JSON object, whether sent as JSON or not.

    Raises:
        UnreadablePayload: the request is not a JSON object.
    """
    value = value_of(row)
    if value is None:
        return row  # type: ignore[no-any-return]  # the members of the object came as the row's own
    if isinstance(value, (bytes, bytearray, str)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UnreadablePayload(f"The request is not JSON: {error}") from None
    if not isinstance(value, Mapping):
        raise UnreadablePayload(f"The request should be a JSON object, not a {type(value).__name__}")
    return value


def list_of(document: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list member of a request's object.

    Raises:
        UnreadablePayload: the object has no list of this name.
    """
    value = document.get(key)
    if not isinstance(value, list):
        raise UnreadablePayload(f"The request has no list `{key}`")
    return value
