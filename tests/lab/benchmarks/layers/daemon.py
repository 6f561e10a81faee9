"""HTTP and queue together: `python -m tests.lab.benchmarks.layers.daemon [--profile]`.

What a request costs the daemon's process, less system calls and frames: from bytes to bytes on 32
connections, routed and guarded, with metrics and the access log, in batches of eight from a stub.
`--profile` shows where it goes.
"""

import cProfile
import pstats
import sys
import tempfile
from pathlib import Path

from tests.lab.benchmarks.layers.stack import Stack, access_log, post
from tests.lab.benchmarks.layers.timing import microseconds, table
from tsctl.daemon.http.messages import Request

BUDGET = 15.0  # 9 for HTTP, 6 for the queue
CONNECTIONS = 32
SHOWN = 40


def make_stack(folder: Path) -> Stack:
    stack = Stack(CONNECTIONS)
    log = access_log(folder, stack.clock)
    metrics = stack.metrics

    def tell(request: Request, status: int, seconds: float) -> None:
        metrics.answered(status)
        log.note(request, status, seconds)

    stack.connections.listener.access = tell
    return stack


def ask_often(stack: Stack, request: bytes) -> None:
    for _ in range(2000):
        stack.ask(request)


def main(profile: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stack = make_stack(Path(folder))
        request = post("model-0")
        stack.ask(request)
        stack.connections.check()
        if profile:
            profiler = cProfile.Profile()
            profiler.runcall(ask_often, stack, request)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(SHOWN)
            return
        table(
            "The daemon's path", [("a request of 100 B", microseconds(lambda: stack.ask(request), CONNECTIONS))], BUDGET
        )


if __name__ == "__main__":
    main("--profile" in sys.argv)
