"""A handler that adds up the numbers of a tensor."""


def handle(data, context):
    if data is None:
        return None
    return [row["NUMBERS"].sum(axis=1, keepdims=True) for row in data]
