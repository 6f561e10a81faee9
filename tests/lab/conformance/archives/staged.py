"""A `BaseHandler` that overrides two stages, as most of TorchServe's users write theirs."""

import torch
from ts.torch_handler.base_handler import BaseHandler


class Staged(BaseHandler):
    def preprocess(self, data):
        return torch.tensor([row.get("data") or row.get("body") for row in data])

    def postprocess(self, data):
        return [{"sum": float(row.sum()), "values": row.tolist()} for row in data]
