"""A class that takes as long as the request says, and tells how many travelled together."""

import time


class Slow:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        time.sleep(max(float(bytes(row["body"]) or 0) for row in data))
        return [f"{len(data)} together" for _ in data]
