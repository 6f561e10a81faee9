"""`BaseEnvelope`: TorchServe's base class for envelopes of users' own."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from handlers.context import Context


class BaseEnvelope(ABC):
    """Calls a handler between two methods that a subclass has; `context` is that of the batch."""

    def __init__(self, handle_fn: Callable[[Any, Context], Any]) -> None:
        self._handle_fn = handle_fn
        self.context: Context | None = None

    def handle(self, data: Any, context: Context) -> Any:
        """Nothing is parsed where there is no data, and nothing formatted where there are no results."""
        self.context = context
        results = self._handle_fn(self.parse_input(data) if data else data, context)
        return self.format_output(results) if results else results

    @abstractmethod
    def parse_input(self, data: Any) -> Any:
        """Make the handler's rows of the requests."""

    @abstractmethod
    def format_output(self, data: Any) -> Any:
        """Make the answers of what the handler returned."""
