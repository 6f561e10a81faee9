"""A handler that answers in pieces."""

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
            time.sleep(0.2)
        return ["end"] * len(data)
