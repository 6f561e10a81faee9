"""A handler with a dependency that only its archive's requirements bring, beside what is installed."""

import msgspec
import tiny_dependency


class Handler:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return [f"{tiny_dependency.WORD} {msgspec.__name__}"] * len(data)
