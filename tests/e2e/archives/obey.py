"""A module function that does to itself what the request says: the ways in which a handler can go wrong.

A request is JSON: {"do": WORD}. `wait PATH` is answered when that file is there.
"""

import os
import signal
import time

from ts.utils.util import PredictionException


def handle(data, context):
    if data is None:
        return None
    words = [row["body"]["do"] for row in data]
    for word in words:
        if word == "raise":
            raise ValueError("as you wish")
        if word == "refuse":
            raise PredictionException("no, thank you", 418)
        if word == "exit":
            os._exit(7)
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "die once":
            marker = os.path.join(context.system_properties["model_dir"], "died")
            if not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
        if word.startswith("sleep "):
            time.sleep(float(word.split()[1]))
        if word.startswith("wait "):
            while not os.path.exists(word.split()[1]):
                time.sleep(0.01)
        if word == "print":
            print("printed by the handler")
            os.write(1, b"written to descriptor 1\n")
    answers = {"pid": os.getpid(), "threads": os.environ["OMP_NUM_THREADS"], "rows": len(data)}
    return [answers for _ in data]
