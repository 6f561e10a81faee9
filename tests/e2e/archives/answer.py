"""Answers without torch: `shout WORDS` in capitals, `slow WORDS` after a moment, `count N` in N pieces and an end."""

import time

from ts.handler_utils.utils import send_intermediate_predict_response


class Answer:
    def initialize(self, context):
        self.initialized = True

    def handle(self, data, context):
        told = [bytes(row["body"]).decode().partition(" ")[::2] for row in data]
        if told[0][0] == "count":  # this model's batches are of one
            for number in range(int(told[0][1])):
                send_intermediate_predict_response([f"{number} "], context.request_ids, "a piece", 200, context)
                time.sleep(0.05)
            return ["end"]
        if any(verb == "slow" for verb, _ in told):
            time.sleep(0.3)
        return [words.upper() for _, words in told]
