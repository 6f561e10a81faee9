"""Whatever a body is filled with, in each field of each schema: no step is long, and little is built of it.

`python -m tests.lab bounds` asks a real daemon with bodies of up to 64 MiB; here they have less, and the
limits are generous.
"""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.protocols import PROTOCOLS, Cases
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.http.limits import BodyTooLarge

SIZE = 160 * 1024  # bytes; the bodies that were slow took 120 ms of these
SMALL = 64 * 1024  # bytes; of these, they took 40 times their size
LONGEST = 0.04  # seconds of the thread's time that one step may take: in a daemon it is a tenth of it
MOST_MEMORY = 8  # bytes for each of the body: elements of eight bytes for a digit, or a copy and what is counted
WINDOWS = 2**20  # bytes besides: those that are walked at a time, and as many values as may be
Begin = Callable[[bytes], Steps[Any]]
EVERY = pytest.mark.parametrize(
    "cases", [pytest.param(cases, id=name) for protocol in PROTOCOLS for name, cases in protocol.cases.items()]
)


def longest_step(steps: Steps[Any]) -> float:
    """Run steps to their end; return the longest, in seconds of the thread's time."""
    longest = 0.0
    while True:
        began = time.thread_time()
        try:
            next(steps)
        except StopIteration:
            return max(longest, time.thread_time() - began)
        except (BadRequest, BodyTooLarge):
            return max(longest, time.thread_time() - began)
        longest = max(longest, time.thread_time() - began)


@EVERY
def test_no_step_is_long_whatever_field_is_filled(cases: Callable[[int], Cases]) -> None:
    check_each_step(cases)


def check_each_step(cases: Callable[[int], Cases]) -> None:
    """Read each body, and see how long the longest step takes."""
    longest = {}
    for begin, name, body in cases(SIZE):
        longest[name] = longest_step(begin(body))
        if longest[name] > LONGEST:  # the collector may have run
            longest[name] = min(longest[name], longest_step(begin(body)))

    assert {name: took for name, took in longest.items() if took > LONGEST} == {}
    assert len(longest) > 15


@pytest.mark.slow  # each allocation is traced; protobuf's are not Python's, and its fields are counted
@EVERY
def test_little_is_built_of_it_whatever_field_is_filled(cases: Callable[[int], Cases]) -> None:
    peaks = {}
    for begin, name, body in cases(SMALL):
        tracemalloc.start()
        try:
            longest_step(begin(body))
            peaks[name] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert {name: peak for name, peak in peaks.items() if peak > MOST_MEMORY * SMALL + WINDOWS} == {}
