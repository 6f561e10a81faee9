"""Writes on from a word, by which word followed which in a text: the smallest language model, answered in pieces."""

import random
from collections import defaultdict
from pathlib import Path

from ts.handler_utils.utils import send_intermediate_predict_response

WORDS = 30


class Parrot:
    def initialize(self, context):
        words = (Path(context.system_properties["model_dir"]) / "corpus.txt").read_text().split()
        self.next = defaultdict(list)
        for word, follower in zip(words, words[1:], strict=False):
            self.next[word].append(follower)

    def handle(self, data, context):
        words = [row["body"].split()[-1] for row in data]
        for _ in range(WORDS):
            words = [random.choice(self.next.get(word) or ["The"]) for word in words]
            # One piece for each request of the batch, sent now, while the next word is computed.
            send_intermediate_predict_response([f"{word} " for word in words], context.request_ids, "", 200, context)
        return ["\n" for _ in data]  # the last piece of each
