"""`BaseEnvelope`: TorchServe's base class for users' own envelopes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from tsctl.handlers.sdk.context import Context


class BaseEnvelope(ABC):
    """Calls a handler between two methods of a subclass; `context` is that of the batch."""

    def __init__(self, handle_fn: Callable[[Any, Context], Any]) -> None:
        self._handle_fn = handle_fn
        self.context: Context | None = None

    def handle(self, data: Any, context: Context) -> Any:
        """Parse the data, run the handler, format its results; empty data and empty results are passed unchanged."""
        self.context = context
        results = self._handle_fn(self.parse_input(data) if data else data, context)
        return self.format_output(results) if results else results

    @abstractmethod
    def parse_input(self, data: Any) -> Any:
        """Return the handler's rows for the requests."""

    @abstractmethod
    def format_output(self, data: Any) -> Any:
        """Return the answers for the handler's results."""
