"""A subclass of BaseHandler that overrides one stage, with a model file and its weights."""

import torch
from ts.torch_handler.base_handler import BaseHandler


class ArgMax(BaseHandler):
    def postprocess(self, data):
        labels = torch.argmax(data, dim=1).tolist()
        return [self.mapping[str(label)] for label in labels]
