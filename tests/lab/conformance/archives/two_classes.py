"""A handler file with two classes that could both be meant."""


class One:
    def initialize(self, context): ...

    def handle(self, data, context):
        return ["one" for _ in data]


class Two:
    def initialize(self, context): ...

    def handle(self, data, context):
        return ["two" for _ in data]
