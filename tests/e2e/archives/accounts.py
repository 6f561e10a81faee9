"""Answers with an account: the request's number, this archive's generation, this process, and the words backwards.

A request is `NUMBER VERB CHECKSUM WORDS`; the verb is `whole`, `slow`, `crash` or, where batches are of one, `pieces`.
Whatever was begun is in the file `journal` first, so that it is known afterwards who has run what; so is a request
whose bytes are not those that its checksum was made of.
"""

import os
import time
import zlib

from ts.handler_utils.utils import send_intermediate_predict_response


class Accounts:
    def initialize(self, context):
        with open(os.path.join(context.system_properties["model_dir"], "generation.txt")) as file:
            self.told = f"{file.read()} {os.getpid()}".encode()
        self.journal = os.open(os.environ["CHAOS_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def handle(self, data, context):
        asked = [self.read(bytes(row["body"]), context.get_request_id(index)) for index, row in enumerate(data)]
        begun = b"".join(b"%s %d\n" % (number, os.getpid()) for number, _, _ in asked)
        os.write(self.journal, begun)  # in one piece: others write there, too
        if any(verb == b"crash" for _, verb, _ in asked):
            os._exit(7)
        answers = [b"%s %s %s" % (number, self.told, words[::-1]) for number, _, words in asked]
        if asked[0][1] != b"pieces":
            time.sleep(0.12 if any(verb == b"slow" for _, verb, _ in asked) else 0.01)
            return answers
        answer = answers[0]
        size = max(64, len(answer) // 4)
        pieces = [answer[start : start + size] for start in range(0, len(answer), size)]
        for piece in pieces[:-1]:
            send_intermediate_predict_response([piece], context.request_ids, "", 200, context)
            time.sleep(0.01)
        return pieces[-1:]

    def read(self, body, request_id):
        """Take a request apart; its id says its number, too."""
        number = request_id.removeprefix("chaos-").encode()
        parts = body.split(b" ", 3)
        if len(parts) == 4 and parts[0] == number and parts[2] == b"%08x" % zlib.crc32(parts[3], int(number)):
            return number, parts[1], parts[3]
        os.write(self.journal, b"%s torn\n" % number)
        return number, b"whole", b"these are not its bytes"
