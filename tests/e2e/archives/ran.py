"""Writes down each request that it begins, sleeps as long as the request says, and names its process.

A request is JSON: {"id": TEXT, "file": PATH, "seconds": NUMBER}; without a file nothing is written.
"""

import os
import time


def handle(data, context):
    if data is None:
        return None
    bodies = [row["body"] for row in data]
    for body in bodies:
        if "file" in body:
            descriptor = os.open(body["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, f"{body['id']}\n".encode())
            os.close(descriptor)
    time.sleep(max(body.get("seconds", 0) for body in bodies))
    return [{"id": body.get("id"), "pid": os.getpid()} for body in bodies]
