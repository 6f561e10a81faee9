"""Fails as on a GPU, with what torch raises there; answers with its process and the size of the batch.

A request `break` breaks the context, as an assert in a kernel does. So many requests as `room` of model-config.yaml
says fit into memory together.
"""

import os

import torch


class PlaysGpu:
    def initialize(self, context):
        self.lost = None
        self.room = context.model_yaml_config.get("room", 100)

    def handle(self, data, context):
        if any(bytes(row["body"]) == b"break" for row in data):
            self.lost = torch.AcceleratorError("CUDA error: device-side assert triggered\nSearch for …")
            self.lost.error_code = 710
        if self.lost is not None:  # for ever, as on a GPU
            raise self.lost
        if len(data) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 400.00 GiB. GPU 0 has …")
        return [f"{os.getpid()} {len(data)}" for _ in data]
