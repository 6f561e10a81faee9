"""Answers with an account: the request's number, this archive's generation, this process, and the words backwards.

A request is `NUMBER VERB WORDS`; the verb is `whole`, or `pieces` where batches are of one. Whatever was begun is in
the file `journal` first, so that it is known afterwards who has run what.
"""

import os
import time

from ts.handler_utils.utils import send_intermediate_predict_response


class Accounts:
    def initialize(self, context):
        with open(os.path.join(context.system_properties["model_dir"], "generation.txt")) as file:
            self.told = f"{file.read()} {os.getpid()}".encode()
        self.journal = os.open(os.environ["CHAOS_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def handle(self, data, context):
        asked = [bytes(row["body"]).split(b" ", 2) for row in data]
        begun = b"".join(b"%s %d\n" % (number, os.getpid()) for number, _, _ in asked)
        os.write(self.journal, begun)  # in one piece: others write there, too
        answers = [b"%s %s %s" % (number, self.told, words[::-1]) for number, _, words in asked]
        if asked[0][1] != b"pieces":
            time.sleep(0.01)
            return answers
        answer = answers[0]
        size = max(64, len(answer) // 4)
        pieces = [answer[start : start + size] for start in range(0, len(answer), size)]
        for piece in pieces[:-1]:
            send_intermediate_predict_response([piece], context.request_ids, "", 200, context)
            time.sleep(0.01)
        return pieces[-1:]
