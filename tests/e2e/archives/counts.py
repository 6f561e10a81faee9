"""A handler that answers in pieces: `go PATH` makes the second one when that file is there."""

import os
import time

from ts.handler_utils.utils import send_intermediate_predict_response


class Counts:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        words = [row["body"] for row in data]
        if words[0].startswith("fail"):
            send_intermediate_predict_response(["begun"] * len(data), context.request_ids, "", 200, context)
            raise RuntimeError("in the middle")
        for step in range(3):
            send_intermediate_predict_response([f"{step} "] * len(data), context.request_ids, "", 200, context)
            path = words[0].partition(" ")[2]
            while path and not os.path.exists(path):
                time.sleep(0.01)
        return ["end"] * len(data)
