"""Counts the requests of each sequence, as a tensor."""

from typing import Any


class Steps:
    def initialize(self, context: Any) -> None:
        self.counts: dict[str, int] = {}

    def handle(self, data: list[Any], context: Any) -> list[dict[str, list[int]]]:
        return [{"n": [self.count(row, context)]} for row in range(len(data))]

    def count(self, row: int, context: Any) -> int:
        name = context.get_sequence_id(row)
        if context.get_request_header(row, context.header_key_sequence_start) == "true":
            self.counts.pop(name, None)
        self.counts[name] = self.counts.get(name, 0) + 1
        return self.counts[name]
