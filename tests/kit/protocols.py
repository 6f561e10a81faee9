"""The protocols that extensions speak, for the tests and programs that ask by every protocol.

Each is `PROTOCOL` in tests/extensions/NAME/protocol.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tests.places import ROOT
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.http.router import Route
from tsctl.daemon.models.registry import Registry

Body = Callable[[], bytes]
Cases = Iterator[tuple[Callable[[bytes], Steps[Any]], str, bytes]]  # the reader of a body, its name, the body
# What is sent, the bodies of a size, and the function that makes a request of one: body, size.
Sized = tuple[str, Callable[[int], Iterator[tuple[str, Body]]], Callable[[bytes, int], Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """A protocol, as its clients speak it.

    Attributes:
        predict: a model's name → target and JSON of a prediction.
        records: whether a plain prediction repeats such a request, which is then recorded.
        lists: targets that name models.
        describes: a model's name → targets that tell about it.
        ready: targets that answer whether the server, or the model `m`, is ready.
        routes: the routes of predictions, where they answer without an event loop; None if they need one.
        cases: bodies of about so many bytes that are the worst for their readers, by what they are.
        sized: the same as requests.
        oversized: a model's name, and bytes → target, body and further header lines of requests with too many members.
    """

    name: str
    predict: Callable[[str], tuple[str, bytes]]
    records: bool = False
    lists: tuple[str, ...] = ()
    describes: Callable[[str], tuple[str, ...]] = lambda _model: ()
    ready: tuple[str, ...] = ()
    routes: Callable[[Registry], Mapping[str, Route]] | None = None
    cases: Mapping[str, Callable[[int], Cases]] = field(default_factory=dict)
    sized: Callable[[], Iterator[Sized]] = lambda: iter(())
    oversized: Callable[[str, int], Sequence[tuple[str, bytes, str]]] = lambda _model, _size: ()


PROTOCOLS: tuple[Protocol, ...] = tuple(
    import_module(f"tests.extensions.{file.parent.name}.protocol").PROTOCOL
    for file in sorted((ROOT / "tests/extensions").glob("*/protocol.py"))
)
