"""The sentence on a version: each kind, its command, and silence where nothing is known."""

import json

from tests.kit.said import said_in
from tsctl.daemon.extensions.verdict.verdict import VerdictFacts, verdict

CORES = "3 workers share 2 cores and slow each other down; at most 2 would be faster"
BUSY = VerdictFacts("slow", requests=280, rate=4.7, capacity=3.3)


@said_in("verdicts.txt")
def test_the_verdict(given: str) -> str:
    changes = json.loads(given)
    room = changes.pop("room", 1000)
    return verdict(BUSY._replace(**changes, shortage=lambda workers: CORES if workers > room else None))
