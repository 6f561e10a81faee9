"""Coroutines of a handler in TorchServe's form: `async def handle(data, context)`, `async def initialize(context)`.

A batch is one call, as of any such handler; `asyncCommunication: true` instead calls `handle` for each request, beside
others.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.typed.waiting import EventLoop, run_on_current_loop


class AwaitedEntryPoint(EntryPoint):
    """An entry point whose coroutines are awaited.

    Args:
        mode: in `async`, `handle` stays a coroutine, and `initialize` runs on the event loop that is current.
    """

    def __init__(self, entry: EntryPoint, mode: wire.Mode) -> None:
        handle: Callable[[Any, Context], Any] = entry.handle
        if inspect.iscoroutinefunction(handle) and mode != "async":
            handle = functools.wraps(handle)(lambda data, context: self._run(entry.handle(data, context)))
        super().__init__(entry.instance, handle)
        self.own_handle, self.checks, self.read = entry.own_handle, entry.checks, entry.read
        self.declared, self.notes = entry.declared, entry.notes
        self._entry = entry
        self._loop: EventLoop | None = None
        self._run: Callable[[Coroutine[Any, Any, Any]], Any]
        if mode == "async":
            self._run = run_on_current_loop
        else:
            self._loop = EventLoop()
            self._run = self._loop.run

    def prepare(self, data: list[Any]) -> dict[int, UnreadablePayload]:
        """Return the unreadable rows, as the handler's own entry point finds them."""
        return self._entry.prepare(data)

    def initialize(self, context: Context) -> None:
        """Load the model; a coroutine function is called without data, as other functions are."""
        if self.instance is not None:
            made = self.instance.initialize(context)
            if inspect.iscoroutine(made):
                self._run(made)
        elif self._loop is not None:
            super().initialize(context)

    def close(self) -> None:
        """Cancel what a coroutine has left running, and close the event loop."""
        if self._loop is not None:
            self._loop.close()
