"""A handler whose `handle` is ours, and that ends its process with a body that begins with `crash`."""

import os

from ts.torch_handler.base_handler import BaseHandler


class Crashes(BaseHandler):
    def initialize(self, context):
        self.initialized = True
        self.context = context

    def preprocess(self, data):
        return [bytes(row["body"]) for row in data]

    def inference(self, data):
        if any(body.startswith(b"crash") for body in data):
            os._exit(7)
        return data

    def postprocess(self, data):
        return [str(len(body)) for body in data]
