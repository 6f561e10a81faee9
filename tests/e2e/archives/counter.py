"""Adds up the numbers of each sequence; `die` ends the worker."""

import os
from typing import Any


class Counter:
    def initialize(self, context: Any) -> None:
        self.sums: dict[str, int] = {}

    def handle(self, data: list[Any], context: Any) -> list[str]:
        return [self.add(row["body"], idx, context) for idx, row in enumerate(data)]

    def add(self, body: str, idx: int, context: Any) -> str:
        if body == "die":
            os._exit(7)
        name = context.get_sequence_id(idx)
        if context.get_request_header(idx, context.header_key_sequence_start) == "true":
            self.sums.pop(name, None)
        self.sums[name] = self.sums.get(name, 0) + int(body)
        return f"{self.sums[name]} {os.getpid()}"
