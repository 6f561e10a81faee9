"""A class for named tensors: answers each input with the sum of its numbers, or with its text in capitals."""


def total(data):
    return sum(map(total, data)) if isinstance(data, list) else data


class Sums:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        return [row["data"].upper() if isinstance(row["data"], str) else [total(row["data"])] for row in data]
