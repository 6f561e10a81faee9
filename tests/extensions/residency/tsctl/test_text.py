"""The words for a version that comes and goes."""

from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        pytest.param(
            {}, ["loaded for 1 min: a request came", "last used 10 s ago", "unloaded in 50 s unless used"],
            id="a loaded version will be unloaded",
        ),
        pytest.param(
            {"unloadsAt": None}, ["loaded for 1 min: a request came", "last used 10 s ago"], id="not while it has work"
        ),
        pytest.param(
            {"unloadsAt": None, "pinned": True, "lastUsed": None},
            ["loaded for 1 min: a request came", "pinned, stays"], id="nor if it is pinned",
        ),
        pytest.param(
            {"unloadsAt": None, "keepAlive": None, "lastUsed": None},
            ["loaded for 1 min: a request came", "keep-alive is forever"], id="nor without a keep-alive",
        ),
        pytest.param(
            {"state": "unloaded", "why": "idle for 1m", "unloadsAt": None, "lastUsed": NOW - 130},
            ["unloaded for 1 min: idle for 1m", "last used 2 min 10 s ago"], id="an unloaded one says why",
        ),
        pytest.param(
            {"state": "held", "why": "unloaded by an operator", "unloadsAt": None, "lastUsed": None, "held": True},
            ["unloaded for 1 min: unloaded by an operator", "no request loads it"], id="by hand",
        ),
        pytest.param(
            {"state": "loading", "unloadsAt": None, "lastUsed": None}, ["loading for 1 min: a request came"],
            id="on its way",
        ),
    ],
)  # fmt: skip
def test_the_state_its_reason_and_its_end(changes: dict[str, Any], facts: list[str]) -> None:
    assert residence_facts(residence(**changes), NOW) == facts


@pytest.mark.parametrize(
    ("state", "reason", "word"),
    [
        ("unloaded", "idle", "idle"), ("unloading", "room", "budget"), ("held", "operator", "by hand"),
        ("loaded", "operator", ""), ("loading", "request", ""), ("unloaded", "", ""),
    ],
)  # fmt: skip
def test_the_reason_in_a_word(state: str, reason: str, word: str) -> None:
    assert short_state(residence(state=state, reason=reason)) == word


def test_memory_is_taken_or_needed() -> None:
    assert memory_facts(residence()) == ["takes 3.0 MiB on host"]
    assert memory_facts(residence(state="unloaded", template=2**20, memory={"host": 2**20, "gpu0": 2**30})) == [
        "takes 1.0 MiB on host, 1.0 GiB on gpu0 when loaded",
        "its template keeps 1.0 MiB, ready for the next request",
    ]
    assert memory_facts(residence(memory={})) == []


def test_loads_are_counted() -> None:
    assert load_facts(residence()) == ["the last load took 0.50 s", "loaded 3 times, unloaded once"]
    assert load_facts(residence(loadSeconds=None)) == []


def test_a_version_that_is_loaded_at_once_has_nothing_to_tell() -> None:
    assert comes_and_goes(residence())
    assert comes_and_goes(residence(onDemand=False, held=True))
    assert not comes_and_goes(residence(onDemand=False))
    assert not comes_and_goes(None)
