"""Sleeps for a batch and for each of its requests, 8 ms and 0.4 ms. A request `fail` is not answered well."""

import time


def handle(data, context):
    if data is None:
        return None  # to be initialized
    if any(bytes(row["body"]) == b"fail" for row in data):
        raise ValueError("as you wish")
    time.sleep(0.008 + 0.0004 * len(data))
    return [b"done"] * len(data)
