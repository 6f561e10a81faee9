"""A plugin of pytest on null cards, whose kernels do nothing: there a test of their numbers is expected to fail.

Which tests these are is seen, and not listed: one failed by an assertion, or because nothing was raised; and while it
ran, its process or one that it started began kernels, and bytes came back from a card. Any other failure is one.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.kit.null_gpu.cards import processes_of

# Each process that runs tests has a folder of its own, before it calls CUDA: so what others do counts for none of its.
FOLDER = Path(os.environ["NULL_CUDA_FOLDER"], f"of-{os.getpid()}")
FOLDER.mkdir(exist_ok=True)
os.environ["NULL_CUDA_FOLDER"] = str(FOLDER)


def _counted() -> tuple[int, int]:
    """Return the kernels and graphs that were begun, and the bytes that came from cards."""
    there = list(processes_of(FOLDER))
    return sum(each["launches"] + each["replays"] for each in there), sum(each["from_card_bytes"] for each in there)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup() -> Generator[None]:
    yield from _expected()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call() -> Generator[None]:
    yield from _expected()


def _expected() -> Generator[None]:
    before = _counted()
    try:
        yield
    except (AssertionError, pytest.fail.Exception) as error:
        if all(now > then for then, now in zip(before, _counted(), strict=True)):
            pytest.xfail(f"the numbers of a null card: {type(error).__name__}: {error}".partition("\n")[0])
        raise
