"""The loop without a server: the same handler, called until every request has its tokens; nothing leaves the process.

    python -m tests.lab.benchmarks.streams.bare REQUESTS TOKENS [TIMES [PAUSE]]

Prints for each time the seconds to the first token and to the last. PAUSE are seconds before each time: after one the
first token comes some hundredths of a millisecond later, as that of a server does that had nothing to do.
"""

import sys
import time

from tests.lab.benchmarks.streams.engine import Engine


class Context:
    """The members of a context that the engine uses."""

    def __init__(self) -> None:
        self.request_ids: dict[int, str] = {}
        self.cancelled: list[str] = []
        self.stopping_criteria: list[object] = []


def run(requests: int, tokens: int) -> tuple[float, float]:
    """Make these tokens for so many requests that begin together; return the seconds to the first and to the last."""
    engine, context = Engine(), Context()
    engine.initialize(context)
    active = [f"request {number}" for number in range(requests)]
    made: dict[str, list[str]] = {name: [] for name in active}
    data: list[dict[str, bytes]] = [{"body": b"%d" % tokens} for _ in active]
    first = 0.0
    began = time.perf_counter()
    while active:
        context.request_ids = dict(enumerate(active))
        items = engine.handle(data, context)
        if not first:
            first = time.perf_counter() - began
        ended = []
        for name, item, stops in zip(active, items, context.stopping_criteria, strict=True):
            made[name].append(item)
            if stops(item):  # type: ignore[operator]
                ended.append(name)
        if ended:
            active = [name for name in active if name not in ended]
        data = [{} for _ in active]
    seconds = time.perf_counter() - began
    assert all(len(each) == tokens for each in made.values())
    return first, seconds


def main(arguments: list[str]) -> None:
    requests, tokens, *times = map(int, arguments[:3])
    pause = float(arguments[3]) if len(arguments) > 3 else 0.0
    for _ in range(times[0] if times else 1):
        time.sleep(pause)
        print(*run(requests, tokens), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
