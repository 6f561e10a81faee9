"""A class that takes rows of any form, as envelopes make them: answers with the type and the value of each."""


def shown(value):
    if isinstance(value, (bytes, bytearray)):
        return {type(value).__name__: value.decode("latin-1")}
    if isinstance(value, dict):
        return {"dict": {name: shown(each) for name, each in value.items()}}
    return {type(value).__name__: value}


class Plain:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        return [shown(value) for value in data]
