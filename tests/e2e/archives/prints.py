"""Prints so many `lines` as the request says; the answer is the worker's pid."""

import os


def handle(data, context):
    for row in data or []:
        print("\n".join(map(str, range(int(bytes(row["body"]).decode().removeprefix("lines "))))))
    return [os.getpid()] * len(data or [])
