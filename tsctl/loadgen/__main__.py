"""`python -P -m tsctl.loadgen`: an order from stdin, JSON lines to stdout."""

import asyncio
import contextlib
import json
import os
import resource
import sys
import time
from typing import Any

import uvloop

from tsctl.loadgen.calls import CallLoop
from tsctl.loadgen.connection import SHOWN, NoResponse, ask_once
from tsctl.loadgen.loop import Loop
from tsctl.loadgen.loops import ClosedLoop, OpenLoop
from tsctl.loadgen.order import PreparedOrder, read
from tsctl.loadgen.tally import look

EVERY = 0.2  # seconds between two `running` lines


def tell(stage: str, **facts: Any) -> None:
    print(json.dumps({"stage": stage} | facts), flush=True)  # noqa: T201 - read by the command


async def run(sending: PreparedOrder) -> int:
    """Send one request, then run; return 1 if the first request failed, else 0."""
    loop = asyncio.get_running_loop()
    broken_off = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), lambda: _stdin_ended(loop, broken_off))
    running: Loop | CallLoop
    if sending.order.grpc:
        running = CallLoop(sending)
        asking = running.ask_once()
    else:
        running = (ClosedLoop if sending.order.rate is None else OpenLoop)(sending, loop)
        asking = ask_once(sending, loop)
    try:
        first = await asking
    except NoResponse as error:
        tell("failed", message=str(error))
        return 1
    if first.status >= 400:
        tell("refused", status=first.status, body=first.body.decode("utf-8", "replace")[:SHOWN])
        return 1
    before = look()
    telling = loop.create_task(_tell_progress(running))
    try:
        await running.run(broken_off)
    finally:
        telling.cancel()
    whole = time.monotonic() - running.began  # until the last answer, or until nobody waited for it any more
    counted = running.tally.document(running.seconds, look() - before)
    tell("done", brokenOff=broken_off.is_set(), first=first.seconds, wholeSeconds=whole, **counted)
    return 0


def _stdin_ended(loop: asyncio.AbstractEventLoop, broken_off: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin.fileno())
        broken_off.set()


async def _tell_progress(running: Loop | CallLoop) -> None:
    while True:
        await asyncio.sleep(EVERY)
        tally = running.tally
        tell("running", seconds=running.seconds, requests=tally.ended, errors=tally.errors)


def main() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # a connection is a descriptor
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # Unbuffered: nothing reads beyond the body, and the end of stdin must be noticed.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stdin:
        sending = read(stdin)
    try:
        return uvloop.run(run(sending))
    except BrokenPipeError:  # the reader of stdout has gone
        return 1


if __name__ == "__main__":
    sys.exit(main())
