"""Run a typed handler as a worker does, without a process."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.typed.entry import typed_entry

_opened: list[EntryPoint] = []


def runtime_of(function: Callable[..., Any], instance: Any = None) -> Runtime:
    """Return the runtime of a typed function, initialized."""
    entry = typed_entry(function, instance)
    assert entry is not None
    context = context_of(Path("/nowhere"))
    _opened.append(entry)
    entry.initialize(context)
    return Runtime(entry, context)


def close_all() -> None:
    """Close the event loops of the test."""
    while _opened:
        _opened.pop().close()


def request(*params: tuple[str, str, bytes], number: int = 0, accept: str = "") -> wire.Row:
    """Return a request with these parts: name, content type, value."""
    return wire.Row(f"r{number}", [("Accept", accept)] if accept else [], list(params))


def ask(function: Callable[..., Any], *bodies: bytes | wire.Row, content_type: str = "") -> list[wire.Answer]:
    """Run one batch; a body is a request of its own."""
    rows = [
        each if isinstance(each, wire.Row) else row(each, content_type, request_id=f"r{number}")
        for number, each in enumerate(bodies)
    ]
    return runtime_of(function).run(rows)


def told(answers: Sequence[wire.Answer]) -> list[tuple[int, str]]:
    """Return each answer's status and body."""
    return [(each.status, each.body.decode()) for each in answers]
