"""A handler whose `handle` is BaseHandler's, and that fails for a batch with one bad word in it."""

import time

from ts.torch_handler.base_handler import BaseHandler


class Spells(BaseHandler):
    def initialize(self, context):
        self.context = context
        self.initialized = True

    def preprocess(self, data):
        words = [bytes(row["body"]).decode() for row in data]
        if "hang" in words:
            time.sleep(600)
        if "bad" in words:
            raise ValueError("there is no such word")
        return words

    def inference(self, data):
        return data

    def postprocess(self, data):
        return [f"{word} of {len(data)}" for word in data]
