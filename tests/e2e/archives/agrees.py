"""Counts tokens in continuous batching, over ranks that compare in each call what they were given."""

import hashlib
from typing import Any

import torch
from torch import distributed


class Agrees:
    def initialize(self, context: Any) -> None:
        distributed.init_process_group("gloo")
        self.left: dict[str, int] = {}

    def handle(self, data: list[Any], context: Any) -> list[str]:
        ids = list(context.request_ids.values())
        for gone in context.cancelled:
            self.left.pop(gone, None)
        for name, each in zip(ids, data, strict=True):
            if each:
                self.left[name] = int(each["body"])
        said = hashlib.sha256(repr((ids, sorted(self.left.items()))).encode()).digest()
        own = torch.frombuffer(bytearray(said), dtype=torch.uint8)
        first = own.clone()
        distributed.broadcast(first, 0)
        agree = torch.tensor([int(torch.equal(own, first))])
        distributed.all_reduce(agree)
        items = []
        for name in ids:
            self.left[name] -= 1
            items.append("." if int(agree) == distributed.get_world_size() else "DIFFER")
        context.stopping_criteria = [self.stops(name) for name in ids]
        return items

    def stops(self, name: str) -> Any:
        def stop(item: str) -> bool:
            if self.left[name] > 0:
                return False
            del self.left[name]
            return True

        return stop
