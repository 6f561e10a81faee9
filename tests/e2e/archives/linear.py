"""Sleeps for a batch and for each of its requests, 8 ms and 0.4 ms; `model-config.yaml` may say `perBatch` in seconds.

A request `fail` is not answered well.
"""

import time

PER_BATCH, PER_REQUEST = 0.008, 0.0004


def handle(data, context):
    if data is None:
        return None  # to be initialized
    if any(bytes(row["body"]) == b"fail" for row in data):
        raise ValueError("as you wish")
    time.sleep(context.model_yaml_config.get("perBatch", PER_BATCH) + PER_REQUEST * len(data))
    return [b"done"] * len(data)
