"""Overlaps: the inference of a request ends when the next one has been read. Alone, it would wait for ever."""

import threading

from ts.torch_handler.base_handler import BaseHandler

READ = threading.Semaphore(0)


class Overlaps(BaseHandler):
    def initialize(self, context):
        self.initialized = True

    def preprocess(self, data):
        word = bytes(data[0]["body"]).decode()
        if word != "first":
            READ.release()
        return word

    def inference(self, word):
        if word != "last":
            READ.acquire()
        return word

    def postprocess(self, word):
        return [f"{word} {self.context.get_request_id(0)}"]
