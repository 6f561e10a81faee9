"""The sentence on a version: each kind, its command, and silence where nothing is known."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.kit.said import say
from tests.kit.told import Told, told_in
from tsctl.daemon.extensions.verdict.verdict import VerdictFacts, verdict

CORES = "3 workers share 2 cores and slow each other down; at most 2 would be faster"
BUSY = VerdictFacts("slow", requests=280, rate=4.7, capacity=3.3)


def room_for(most: int) -> Callable[[int], str | None]:
    return lambda workers: CORES if workers > most else None


def said(given: str) -> str:
    changes = json.loads(given)
    room = changes.pop("room", 1000)
    return verdict(BUSY._replace(**changes, shortage=lambda workers: CORES if workers > room else None))


@told_in([Path(__file__).with_name("verdicts.txt")])
def test_the_verdict(told: Told) -> None:
    told.compare(say(told.lines, said))
