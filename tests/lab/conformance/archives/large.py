"""A function whose answer is larger than what TorchServe takes from a worker: 6 553 500 bytes."""


def handle(data, context):
    return data and [b"x" * 7_000_000 for _ in data]
