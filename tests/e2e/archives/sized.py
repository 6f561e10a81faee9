"""Answers with the size of its batch, the batch size that it is told, and its process; each batch takes 5 ms."""

import os
import time


def handle(data, context):
    if data is None:
        return None
    time.sleep(0.005)
    answer = {"rows": len(data), "batchSize": context.system_properties["batch_size"], "pid": os.getpid()}
    return [answer for _ in data]
