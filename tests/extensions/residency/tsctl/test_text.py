"""The words for a version that comes and goes."""

import json
from typing import Any

from tests.kit.said import said_in
from tsctl.extensions.residency.text import comes_and_goes, load_facts, memory_facts, residence_facts, short_state

NOW = 10_000.0


def residence(**changes: Any) -> dict[str, Any]:
    """Return the document of a version that a request loaded a minute ago, and that was used ten seconds ago."""
    return {
        "state": "loaded", "since": NOW - 60, "why": "a request came", "reason": "request", "onDemand": True,
        "held": False, "pinned": False, "lastUsed": NOW - 10, "unloadsAt": NOW + 50, "keepAlive": 60.0,
        "loads": {"request": 2, "operator": 1}, "unloads": {"idle": 1}, "loadSeconds": 0.5,
        "memory": {"host": 3 * 2**20}, "template": 0,
    } | changes  # fmt: skip


@said_in("states.txt")
def test_the_state_its_reason_and_its_end(given: str) -> str:
    return "\n".join(residence_facts(residence(**json.loads(given)), NOW))


@said_in("words.txt")
def test_the_reason_in_a_word(given: str) -> str:
    return short_state(residence(**json.loads(given)))


@said_in("facts.txt")
def test_its_memory_and_its_loads(given: str) -> str:
    document = residence(**json.loads(given))
    return "\n".join([*memory_facts(document), *load_facts(document)])


def test_a_version_that_is_loaded_at_once_has_nothing_to_tell() -> None:
    assert comes_and_goes(residence())
    assert comes_and_goes(residence(onDemand=False, held=True))
    assert not comes_and_goes(residence(onDemand=False))
    assert not comes_and_goes(None)
