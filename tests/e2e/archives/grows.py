"""Takes as many MiB as the request says and waits; or, without a number, tells which processors it may use.

With `atLoad` in its model-config.yaml it takes so many while it is loaded.
"""

import os
import time

kept = []


def grow(mebibytes):
    kept.append(bytearray(os.urandom(2**20)) * mebibytes)
    time.sleep(20)


class Grows:
    def initialize(self, context):
        if "atLoad" in context.model_yaml_config:
            grow(context.model_yaml_config["atLoad"])

    def handle(self, data, context):
        for row in data:
            if asked := bytes(row["body"]).decode():
                grow(int(asked))
        return [{"cpus": sorted(os.sched_getaffinity(0)), "threads": os.environ["OMP_NUM_THREADS"]} for _ in data]
