"""Inputs of other programs, regressions and damaged examples satisfy the claims."""

import gc
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.lab.fuzz.damage import mutations
from tests.lab.fuzz.targets import CRASHES, NAMES, target

EXAMPLES = 40  # of each target: `make fuzz` tries a million


@pytest.fixture(autouse=True, scope="module")
def no_thread_is_left() -> Iterator[None]:
    yield
    for name in NAMES:
        target(name).close()
    gc.collect()  # with objects of a library, its thread ends


@pytest.mark.slow  # of HTTP, there are hundreds
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_are_read_as_claimed(name: str) -> None:
    chosen = target(name)

    for example in chosen.examples:
        chosen.check(example)


@pytest.mark.parametrize(
    ("name", "crash"),
    [pytest.param(path.parent.name, path, id=f"{path.parent.name}: {path.name}") for path in CRASHES.glob("*/*")],
)
def test_what_once_broke_a_claim_does_so_no_more(name: str, crash: Path) -> None:
    target(name).check(crash.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_damaged_examples_are_read_as_claimed(name: str) -> None:
    chosen = target(name)

    for data in islice(mutations(tuple(chosen.examples), tuple(chosen.words), random.Random(name)), EXAMPLES):
        chosen.check(data)
