"""A class that answers in pieces: as many as the request says, then the last."""

from ts.handler_utils.utils import send_intermediate_predict_response


class Streams:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        count = int(bytes(data[0]["body"]))
        for number in range(count):
            send_intermediate_predict_response(
                [f"piece {number}\n"], context.request_ids, "Intermediate Prediction success", 200, context
            )
        return ["the end\n"]
