"""A handler that loads while there is a file, waits while there is none, and fails if it says so."""

import os
import time


class Fragile:
    def initialize(self, context):
        while not os.path.exists(os.environ["TEST_WORD"]):
            time.sleep(0.02)
        with open(os.environ["TEST_WORD"]) as word:
            self.check(word.read())

    def check(self, word):
        if word == "fail":
            raise FileNotFoundError("the vocabulary is missing")

    def handle(self, data, context):
        return ["ok"] * len(data)
