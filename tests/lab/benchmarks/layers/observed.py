"""What observing costs: `python -m tests.lab.benchmarks.layers.observed [--profile]`.

The daemon's path as in layers/daemon.py, with an access log as text, in JSON, and with every request traced: the
differences are the cost of a line of JSON, and of a recorded request on the event loop and in the thread that encodes.
`--profile` shows where the last goes.
"""

import cProfile
import pstats
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from daemon.core.clock import FakeClock
from daemon.http.access_log import AccessLog
from daemon.http.messages import Request
from daemon.tracing.otlp import readable
from daemon.tracing.span import Span
from daemon.tracing.tracer import Traces
from tests.lab.benchmarks.layers.daemon import ask_often
from tests.lab.benchmarks.layers.stack import Stack, post
from tests.lab.benchmarks.layers.timing import microseconds, table

CONNECTIONS = 8
ROUNDS = 5
SHOWN = 40


def make_stack(folder: Path, *, as_json: bool = False, ratio: float | None = None, encode: bool = False) -> Stack:
    """Return a stack whose requests are logged, and traced where a ratio is given.

    Args:
        ratio: of the requests that are recorded, 0.0 to 1.0.
        encode: encode the spans, 512 at once.
    """
    spans: list[Span] = []
    resource, scope = Resource({"service.name": "tsctl"}), InstrumentationScope("tsctl", "1.0")

    def offer(span: Span) -> None:
        spans.append(span)
        if len(spans) >= 512:
            if encode:
                encode_spans([readable(each, resource, scope) for each in spans])
            spans.clear()

    traces = None if ratio is None else Traces(FakeClock(), ratio, offer)
    stack = Stack(CONNECTIONS, tracing=traces)
    if traces is not None:
        traces.clock = stack.clock
    log = AccessLog(folder / f"{as_json}.{ratio}.{encode}.log", stack.clock, foreground=False, as_json=as_json)

    def tell(request: Request, status: int, seconds: float) -> None:
        stack.metrics.answered(status)
        log.note(request, status, seconds)

    stack.connections.listener.access = tell
    return stack


def main(profile: bool) -> None:
    request = post("model-0")
    with tempfile.TemporaryDirectory() as folder:
        stacks = {
            "an access log as text": make_stack(Path(folder)),
            "in JSON": make_stack(Path(folder), as_json=True),
            "traced, none recorded": make_stack(Path(folder), ratio=0.0),
            "traced, each recorded": make_stack(Path(folder), ratio=1.0),
            "and its spans encoded": make_stack(Path(folder), ratio=1.0, encode=True),
        }
        for stack in stacks.values():
            stack.ask(request)
            stack.connections.check()
        if profile:
            profiler = cProfile.Profile()
            profiler.runcall(ask_often, stacks["and its spans encoded"], request)
            pstats.Stats(profiler).sort_stats("tottime").print_stats(SHOWN)
            return
        times: dict[str, list[float]] = {name: [] for name in stacks}
        for _ in range(ROUNDS):
            for name, stack in stacks.items():
                times[name].append(microseconds(partial(stack.ask, request), CONNECTIONS))
        table("The daemon's path, observed", [(name, median(taken)) for name, taken in times.items()])


if __name__ == "__main__":
    main("--profile" in sys.argv)
