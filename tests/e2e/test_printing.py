"""A handler that prints more than anybody reads: its log has the beginning of each second, and other models go on."""

import re
import statistics
import time
from functools import partial

import pytest

from tests.e2e.load import repeating
from tests.e2e.served import Served, eventually

DROPPED = re.compile(r"^\S+ \d+ daemon \((\d+) lines were dropped here: ", re.MULTILINE)
PRINTED = re.compile(r"^\S+ \d+ stdout \d+$", re.MULTILINE)


@pytest.mark.thin
def test_each_line_is_in_the_log_or_counted_there(served: Served) -> None:
    served.register("prints")

    assert served.ask("/predictions/prints", b"lines 120000").status == 200

    def dropped_and_printed() -> tuple[int, int]:
        log = served.log("prints@1.0.log")
        return sum(map(int, DROPPED.findall(log))), len(PRINTED.findall(log))

    eventually(lambda: sum(dropped_and_printed()) == 120_000, "each line is passed on or counted")
    assert min(dropped_and_printed()) > 0


def test_another_model_answers_beside_it_as_if_it_were_alone(served: Served) -> None:
    served.register("prints", "--workers", "1")
    served.register("sized", "--workers", "1", "--batch-size", "1")

    def latencies() -> list[float]:
        seen = []
        for _ in range(100):
            began = time.perf_counter()
            assert served.ask("/predictions/sized", b"x").status == 200
            seen.append(time.perf_counter() - began)
        return seen

    latencies()
    with repeating(partial(served.ask, "/predictions/prints", b"lines 120000")):
        beside = latencies()

    # Alone it takes 7 ms; 1 244 ms were seen where each line was logged by itself. Other processes may cost some.
    assert statistics.quantiles(beside, n=20)[-1] < 0.25
