"""Requests with the worst bodies of each schema (schemas.py): over HTTP plain and as gzip.

Extensions add theirs: `kinds` in tests/extensions/NAME/bodies.py.
"""

import gzip
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.kit.protocols import PROTOCOLS
from tests.kit.shelf import modules
from tests.lab.benchmarks.bodies import ROOM, Asked, request
from tests.lab.benchmarks.schemas import Body

JSON = "application/json"
DECLARED = "x-int32"  # the model that takes tensors; "sized" takes any JSON
_ANY = 1024  # bytes: the names are those of bodies of any size
Bodies = Callable[[int], Iterator[tuple[str, Body]]]


def kinds() -> Iterator[tuple[str, Callable[[int], Asked]]]:
    """Yield the name of each body, and the function that makes a request of a size."""
    for protocol in PROTOCOLS:
        for what, bodies, make in protocol.sized():
            yield from _each(what, bodies, make)
    for extended in modules("bodies"):
        for what, bodies, make in extended.kinds():
            yield from _each(what, bodies, make)


def _each(what: str, bodies: Bodies, make: Callable[[str, bytes, int], Asked]) -> Iterator[Any]:
    for number, (name, _) in enumerate(bodies(_ANY)):
        yield f"{what} {name}", partial(_nth, f"{what} {name}", bodies, make, number)


def _nth(name: str, bodies: Bodies, make: Callable[[str, bytes, int], Asked], number: int, size: int) -> Asked:
    return make(name, next(body for at, (_, body) in enumerate(bodies(size - ROOM)) if at == number)(), size)


def over_http(target: str, packed: bool, name: str, body: bytes, size: int) -> Asked:
    """Return a request with a body, as gzip if `packed`; it is of `size` bytes, or more."""
    sent = gzip.compress(body, 1, mtime=0) if packed else body
    asked = request(name, sent, JSON, target=target, status=0)
    if packed:
        asked.head = asked.head[:-2] + b"Content-Encoding: gzip\r\n\r\n"
    asked.size = max(size, len(sent))
    return asked


KINDS = dict(kinds())
