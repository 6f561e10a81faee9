"""Prints as the request says: so many lines, or without end for so many seconds; the answer is the worker's pid."""

import os
import time


def handle(data, context):
    if data is None and "PRINTS_AND_DIES" in os.environ:
        print("\n".join(map(str, range(120_000))), flush=True)
        os._exit(9)
    for row in data or []:
        word, _, count = bytes(row["body"]).decode().partition(" ")
        if word == "lines":
            print("\n".join(map(str, range(int(count)))))
        elif word == "one-by-one":
            for number in range(int(count)):
                os.write(1, b"%d\n" % number)
        elif word == "seconds":
            end, page = time.monotonic() + float(count), b"a line of 32 bytes, with its end\n" * 1024
            while time.monotonic() < end:
                os.write(1, page)
    return [os.getpid()] * len(data or [])
