"""A class that runs out of memory while it loads."""


class NoMemory:
    def initialize(self, context):
        raise MemoryError("too large")

    def handle(self, data, context):
        return data
