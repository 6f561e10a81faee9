"""Counts up to the number in the body, a number in each call; `slow` waits 20 ms in each, `die` ends the worker."""

import os
import time
from collections.abc import Callable
from typing import Any


class Tokens:
    def initialize(self, context: Any) -> None:
        context.cache = {}

    def handle(self, data: list[Any], context: Any) -> list[str]:
        for gone in context.cancelled:
            del context.cache[gone]
        names = list(context.request_ids.values())
        for name, row in zip(names, data, strict=True):
            if row:
                words = row["body"].split()
                if "die" in words:
                    os._exit(7)
                context.cache[name] = [0, int(words[0]), "slow" in words]
        if any(context.cache[name][2] for name in names):
            time.sleep(0.02)
        for name in names:
            context.cache[name][0] += 1
        items = [f"{context.cache[name][0]}/{len(context.cache)} " for name in names]
        context.stopping_criteria = [self.stops(context.cache, name) for name in names]
        return items

    def stops(self, cache: dict[str, list[Any]], name: str) -> Callable[[str], bool]:
        def stop(_: str) -> bool:
            done = cache[name][0] == cache[name][1]
            if done:
                del cache[name]
            return done

        return stop
