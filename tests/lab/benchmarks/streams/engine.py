"""A stub engine: each call takes 1 ms, in which the processor is free as while a GPU runs, and makes a token a request.

A handler for continuous batching as TorchServe's documentation has it: the state of a request is kept by its id. The
body is the number of tokens; the tokens are `1 `, `2 ` and so on, so that a client can tell whether all came in order.
"""

import time
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
