"""A class that fails to load."""


class NoLoad:
    def initialize(self, context):
        raise RuntimeError("no such weights")

    def handle(self, data, context):
        return data
