"""A status, a phrase and headers for each request of a batch."""

from ts.utils.util import PredictionException


class Gatekeeper:
    def initialize(self, context):
        self.context = context

    def handle(self, data, context):
        if any(row["body"] == "fire" for row in data):
            raise PredictionException("The building is on fire", 503)
        answers = []
        for idx, row in enumerate(data):
            if row["body"] == "stranger":
                context.set_response_status(code=403, phrase="Not Today", idx=idx)
                context.set_response_header(idx, "X-Reason", "unknown")
                answers.append("Invalid response")
            else:
                answers.append({"welcome": row["body"], "id": context.get_request_id(idx), "row": idx})
        return answers
