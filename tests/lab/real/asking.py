"""A daemon's answers, beside those of the same function in this process."""

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from typing import Any

from tests.e2e.served import Served
from tests.lab.real.models import RealModel

TIMES = 3  # that each body is sent while others wait, so that batches are mixed
TOGETHER = 16
CLOSE = 2e-3  # of a number, or of 1 where it is smaller: a batch adds up in another order than one row does


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield where an answer is another one: numbers may be close, all else is equal."""
    if isinstance(expected, float) or isinstance(found, float):
        if not math.isclose(expected, found, rel_tol=CLOSE, abs_tol=CLOSE):
            yield f"{place or 'the answer'}: {found!r:.200}, expected {expected!r:.200}"
    elif isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        yield from chain.from_iterable(differences(expected[key], found[key], f"{place}.{key}") for key in expected)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        yield from chain.from_iterable(
            differences(one, other, f"{place}[{number}]")
            for number, (one, other) in enumerate(zip(expected, found, strict=True))
        )
    elif expected != found:
        yield f"{place or 'the answer'}: {found!r:.200}, expected {expected!r:.200}"


def compare(served: Served, name: str, model: RealModel) -> tuple[int, list[str]]:
    """Register a model, ask it about each body alone and in batches, and unregister it.

    Returns:
        How many answers there were, and what was wrong with each that was.
    """
    folder = served.folder / name
    folder.mkdir()
    arguments = model.serve(served, folder)
    done = served.run("register", *arguments, "--name", name, patience=600)
    assert done.returncode == 0, done.stderr
    answer = model.function(folder)
    bodies = model.bodies()
    expected = [json.loads(json.dumps(answer(body))) for body in bodies]

    def ask(number: int) -> list[str]:
        target, body = model.question(bodies[number])
        got = served.ask(target.format(name), body)
        if got.status != 200:
            return [f"{name}, body {number}: status {got.status}: {got.body[:300].decode(errors='replace')}"]
        return [f"{name}, body {number}: {each}" for each in differences(expected[number], model.answer(got.body))]

    numbers = range(len(bodies))
    wrong = [each for number in numbers for each in ask(number)]
    with ThreadPoolExecutor(TOGETHER) as pool:
        for found in pool.map(ask, chain.from_iterable(repeat(numbers, TIMES))):
            wrong += found
    served.tsctl("unregister", name)
    return len(bodies) * (1 + TIMES), wrong
