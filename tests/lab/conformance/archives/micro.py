"""A handler that lets `MicroBatching` run its stages."""

import torch
from ts.handler_utils.micro_batching import MicroBatching
from ts.torch_handler.base_handler import BaseHandler


class Micro(BaseHandler):
    def __init__(self):
        super().__init__()
        self.handle = MicroBatching(self, micro_batch_size=2)

    def preprocess(self, data):
        return torch.tensor([row.get("body") for row in data])
