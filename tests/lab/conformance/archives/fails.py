"""A class whose `handle` goes wrong in the way that the request names."""

import os
import signal
import sys
import time

from ts.utils.util import PredictionException


class Fails:
    def initialize(self, context):
        self.context = context

    def handle(self, data, context):
        word, _, argument = data[0]["body"]["do"].partition(" ")
        if word == "raise":
            raise ValueError("as you wish")
        if word == "raise-nothing":
            raise RuntimeError
        if word == "refuse":
            raise PredictionException("no, thank you", int(argument))
        if word == "refuse-plainly":
            raise PredictionException("no, thank you")
        if word == "memory":
            raise MemoryError("no more")
        if word == "cuda":
            raise RuntimeError("CUDA error: device-side assert triggered")
        if word == "return":
            values = {"none": None, "dict": {"a": 1}, "str": "text", "tuple": ("a",), "empty": [], "two": [1, 2]}
            return values[argument]
        if word == "generate":
            return (each for each in ("a",))
        if word == "exit":
            sys.exit(3)
        if word == "leave":
            os._exit(7)
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "sleep":
            time.sleep(float(argument))
        if word == "print":
            print("printed by the handler", flush=True)
            sys.stderr.write("and on stderr\n")
            os.write(1, b"and on descriptor 1\n")
        if word == "chdir":
            os.chdir("/")
        if word == "signal":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if word == "fork":
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        return ["well"]
