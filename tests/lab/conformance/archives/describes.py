"""A `BaseHandler` that describes itself."""

from ts.torch_handler.base_handler import BaseHandler


class Describes(BaseHandler):
    def initialize(self, context):
        self.context = context
        self.initialized = True

    def describe_handle(self):
        return [{"labels": ["cat", "dog"], "inputs": 3}]

    def preprocess(self, data):
        return data

    def inference(self, data):
        return data

    def postprocess(self, data):
        return ["predicted" for _ in data]
