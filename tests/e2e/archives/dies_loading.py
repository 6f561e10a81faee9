"""A handler whose process dies while it loads."""

import os
import sys


class Handler:
    def initialize(self, context):
        print("about to fall over", file=sys.stderr, flush=True)
        os._exit(9)

    def handle(self, data, context):
        return data
