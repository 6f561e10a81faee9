"""Answers with what is in its archive: which one serves? A request `wait PATH` is answered when that file is there."""

import os
import time


class Tells:
    def initialize(self, context):
        directory = context.system_properties["model_dir"]
        with open(os.path.join(directory, "told.txt")) as file:
            self.told = file.read()
        if self.told == "broken":
            raise ValueError("this one cannot be loaded")
        while self.told.startswith("late") and not os.path.exists(os.environ["TEST_GO"]):
            time.sleep(0.02)

    def handle(self, data, context):
        for row in data:
            word, _, path = bytes(row.get("body") or b"").decode().partition(" ")
            while word == "wait" and not os.path.exists(path):
                time.sleep(0.01)
        return [self.told for _ in data]
