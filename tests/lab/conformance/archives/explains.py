"""A `BaseHandler` that explains."""

import torch
from ts.torch_handler.base_handler import BaseHandler


class Explains(BaseHandler):
    def initialize(self, context):
        super().initialize(context)
        self.explain = True

    def preprocess(self, data):
        bodies = [row.get("body") for row in data]
        return torch.tensor([body["data"] if isinstance(body, dict) else body for body in bodies])

    def get_insights(self, tensor_data, raw_data, target=0):
        return [{"rows": len(tensor_data), "target": target, "raw": str(raw_data)}]
