"""Sleeps for a batch and for each of its requests, 50 ms and 10 ms: asleep, two workers need no more cores than one."""

import time

PER_BATCH, PER_REQUEST = 0.050, 0.010


def handle(data, context):
    if data is None:
        return None  # to be initialized
    time.sleep(PER_BATCH + PER_REQUEST * len(data))
    return [b"done"] * len(data)
