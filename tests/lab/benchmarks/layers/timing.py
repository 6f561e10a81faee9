"""How long a call takes, in processor time, and a table of such times."""

import gc
import time
from collections.abc import Callable, Sequence

REPEATS = 7


def microseconds(call: Callable[[], object], requests: int, least_seconds: float = 0.15) -> float:
    """Processor time of one request, the least of `REPEATS` runs.

    Args:
        call: does the work of `requests` requests.
        least_seconds: each run repeats the call for at least this long.
    """
    call()
    number, spent = 1, 0.0
    while True:  # how many calls make a run
        spent = _run(call, number)
        if spent >= least_seconds / 4:
            break
        number *= 4
    number = max(1, round(number * least_seconds / spent))
    return min(_run(call, number) for _ in range(REPEATS)) / number / requests * 1e6


def _run(call: Callable[[], object], number: int) -> float:
    gc.collect()  # each run begins alike; what it leaves behind itself is its own cost
    began = time.process_time()
    for _ in range(number):
        call()
    return time.process_time() - began


def table(title: str, rows: Sequence[tuple[str, float]], budget: float | None = None) -> None:
    """Print µs a request; the first row is the one with the budget."""
    print(f"\n{title}{'' if budget is None else f': budget {budget:g} µs a request'}")
    for index, (name, cost) in enumerate(rows):
        over = (
            "" if budget is None or index else "  within" if cost <= budget else f"  {cost / budget:.1f} × the budget"
        )
        print(f"  {name:<58} {cost:8.2f} µs{over}")
