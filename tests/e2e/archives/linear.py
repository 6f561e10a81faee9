"""Sleeps 8 ms for a batch and 0.4 ms for each of its requests; a request `fail` is not answered well."""

import time

PER_BATCH, PER_REQUEST = 0.008, 0.0004


def handle(data, context):
    if data is None:
        return None  # to be initialized
    if any(bytes(row["body"]) == b"fail" for row in data):
        raise ValueError("as you wish")
    time.sleep(PER_BATCH + PER_REQUEST * len(data))
    return [b"done"] * len(data)
