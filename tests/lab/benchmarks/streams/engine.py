"""A stub engine: each call takes 1 ms, in which the processor is free as while a GPU runs, and makes a token a request.

A handler for continuous batching as TorchServe's documentation has it: the state of a request is kept by its id. The
body is the number of tokens; the tokens are `1 `, `2 ` and so on, so that a client can tell whether all came in order.
"""

import time
from types import SimpleNamespace
from typing import Any

STEP = 0.001  # seconds
MOST = 20_000
TOKENS = [f"{number} " for number in range(MOST + 1)]


class Request:
    """The state of one request."""

    __slots__ = ("count", "made")

    def __init__(self, count: int) -> None:
        self.count = count
        self.made = 0

    def is_last(self, token: str) -> bool:
        return self.made == self.count


class Engine:
    """The handler."""

    def initialize(self, context: Any) -> None:
        context.cache = {}

    def handle(self, data: list[Any], context: Any) -> list[str]:
        cache: dict[str, Request] = context.cache
        for gone in context.cancelled:
            cache.pop(gone, None)
        names = context.request_ids.values()
        for name, row in zip(names, data, strict=True):
            if row:
                cache[name] = Request(int(row["body"]))
        time.sleep(STEP)
        active = [cache[name] for name in names]
        for request in active:
            request.made += 1
        context.stopping_criteria = [request.is_last for request in active]
        return [TOKENS[request.made] for request in active]


def run_bare(requests: int, tokens: int, pause: float) -> tuple[float, float]:
    """Make these tokens for so many requests that begin together; return the seconds to the first and to the last."""
    time.sleep(pause)  # after one a first token comes some hundredths of a millisecond later, as served
    handler, context = Engine(), SimpleNamespace(cancelled=[])
    handler.initialize(context)
    active = [f"request {number}" for number in range(requests)]
    made: dict[str, list[str]] = {name: [] for name in active}
    data: list[dict[str, bytes]] = [{"body": b"%d" % tokens} for _ in active]
    first, began = 0.0, time.perf_counter()
    while active:
        context.request_ids = dict(enumerate(active))
        items = handler.handle(data, context)
        first = first or time.perf_counter() - began
        rows = [*zip(active, items, context.stopping_criteria, strict=True)]
        for name, item, _ in rows:
            made[name].append(item)
        active = [name for name, item, stops in rows if not stops(item)]
        data = [{} for _ in active]
    seconds = time.perf_counter() - began
    assert all(len(each) == tokens for each in made.values())
    return first, seconds
