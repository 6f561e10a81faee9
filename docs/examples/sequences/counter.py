"""Add up the numbers of each sequence."""

from typing import Any


class Counter:
    def initialize(self, context: Any) -> None:
        self.sums: dict[str, int] = {}  # by the sequence's id

    def handle(self, data: list[Any], context: Any) -> list[str]:
        return [self.add(int(row["body"]), idx, context) for idx, row in enumerate(data)]

    def add(self, number: int, idx: int, context: Any) -> str:
        name = context.get_sequence_id(idx)
        if context.get_request_header(idx, context.header_key_sequence_start) == "true":
            self.sums.pop(name, None)
        self.sums[name] = total = self.sums.get(name, 0) + number
        if context.get_request_header(idx, context.header_key_sequence_end) == "true":
            del self.sums[name]
        return str(total)
