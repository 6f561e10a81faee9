"""Ends its process with a body that begins with `crash`; answers others with their length, and the process's id."""

import json
import os


class Crashes:
    def initialize(self, context):
        self.ids = context

    def handle(self, data, context):
        bodies = [bytes(row["body"]) for row in data]
        if any(body.startswith(b"crash") for body in bodies):
            os._exit(7)
        return [json.dumps({"length": len(body), "pid": os.getpid()}) for body in bodies]
