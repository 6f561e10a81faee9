"""Takes as many MiB as the request says and waits; or, without a number, tells which processors it may use.

With `GROWS_AT_LOAD` in its environment it takes so many while it is loaded.
"""

import os
import time

kept = []


def grow(mebibytes):
    kept.append(bytearray(os.urandom(2**20)) * mebibytes)
    time.sleep(20)


class Grows:
    def initialize(self, context):
        if "GROWS_AT_LOAD" in os.environ:
            grow(int(os.environ["GROWS_AT_LOAD"]))

    def handle(self, data, context):
        for row in data:
            if asked := bytes(row["body"]).decode():
                grow(int(asked))
        return [{"cpus": sorted(os.sched_getaffinity(0)), "threads": os.environ["OMP_NUM_THREADS"]} for _ in data]
