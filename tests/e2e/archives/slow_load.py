"""A handler that loads until a file named `go` appears beside the model's log of intentions."""

import os
import time


class Handler:
    def initialize(self, context):
        while not os.path.exists(os.environ["TEST_GO"]):
            time.sleep(0.02)

    def handle(self, data, context):
        return ["ok"] * len(data)
