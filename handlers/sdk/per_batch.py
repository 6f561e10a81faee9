"""Attributes of a handler that belong to a batch: concurrent batches each have their own value.

class BaseHandler:
    context = PerBatch()

handler.context = a                  all threads see a
with own_values(handler, context=b): this thread sees b, and its assignments stay in this thread
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Own(threading.local):
    def __init__(self) -> None:
        self.values: dict[tuple[int, str], Any] = {}  # (id of the handler, attribute) → value


_own = _Own()


class PerBatch:
    """An attribute of a handler with a value per batch; None until assigned."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, handler: Any, owner: type | None = None) -> Any:
        if handler is None:
            return self
        own = _own.values
        if own:
            key = (id(handler), self._name)
            if key in own:
                return own[key]
        return vars(handler).get(self._name)

    def __set__(self, handler: Any, value: Any) -> None:
        key = (id(handler), self._name)
        if key in _own.values:
            _own.values[key] = value
        else:
            vars(handler)[self._name] = value


@contextmanager
def own_values(handler: Any, **values: Any) -> Iterator[None]:
    """Set values of some `PerBatch` attributes of the handler for this thread only, within the block."""
    keys = {(id(handler), name): value for name, value in values.items()}
    before = {key: _own.values[key] for key in keys if key in _own.values}
    _own.values.update(keys)
    try:
        yield
    finally:
        for key in keys:
            del _own.values[key]
        _own.values.update(before)
