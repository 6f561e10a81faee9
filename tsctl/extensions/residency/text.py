"""The residence of a version in memory, from the daemon's document, in words."""

from collections.abc import Mapping
from typing import Any

from tsctl.render import bytes_text, duration_text, short_bytes

_SHORT = {"idle": "idle", "room": "budget", "operator": "by hand"}  # by the kind of the reason
_ABSENT = ("unloaded", "unloading", "held")


def comes_and_goes(residence: Mapping[str, Any] | None) -> bool:
    """Return whether a version is loaded on demand, or unloaded by an operator; others have nothing to tell."""
    return residence is not None and bool(residence["onDemand"] or residence["held"])


def short_state(residence: Mapping[str, Any] | None) -> str:
    """Return why a version is not in memory, in a word or two; empty for one that is."""
    if residence is None or residence["state"] not in _ABSENT:
        return ""
    return _SHORT.get(residence["reason"], "")


def residence_facts(residence: Mapping[str, Any], now: float) -> list[str]:
    """Return the state, since when and why, the last use, and when the version is unloaded.

    Args:
        now: seconds since the epoch.
    """
    state = "unloaded" if residence["state"] == "held" else residence["state"]
    facts = [f"{state} for {duration_text(max(0.0, now - residence['since']))}: {residence['why']}"]
    used, unloads = residence["lastUsed"], residence["unloadsAt"]
    if used is not None:
        facts.append(f"last used {duration_text(max(0.0, now - used))} ago")
    if residence["state"] == "held":
        facts.append("no request loads it")
    elif state == "loaded" and residence["pinned"]:
        facts.append("pinned, stays")
    elif unloads is not None:
        facts.append(f"unloaded in {duration_text(max(0.0, unloads - now))} unless used")
    elif state == "loaded" and residence["keepAlive"] is None:
        facts.append("keep-alive is forever")
    return facts


def memory_facts(residence: Mapping[str, Any]) -> list[str]:
    """Return the memory that the version takes, or needs when it is loaded, and that of its template."""
    taken = [f"{bytes_text(count)} on {device}" for device, count in residence["memory"].items()]
    facts = [f"takes {', '.join(taken)}{' when loaded' if residence['state'] in _ABSENT else ''}"] if taken else []
    if residence["template"]:
        facts.append(f"its template keeps {bytes_text(residence['template'])}, ready for the next request")
    return facts


def load_facts(residence: Mapping[str, Any]) -> list[str]:
    """Return how often the version was loaded and unloaded, and how long the last load took."""
    if residence["loadSeconds"] is None:
        return []
    loads, unloads = (_times(sum(residence[counts].values())) for counts in ("loads", "unloads"))
    return [f"the last load took {residence['loadSeconds']:.2f} s", f"loaded {loads}, unloaded {unloads}"]


def budget_facts(memory: Mapping[str, Any] | None) -> list[str]:
    """Return how much of the budget of each device the models take; nothing without a budget."""
    if memory is None:
        return []
    sizes = [(device, memory["used"][device], limit) for device, limit in memory["budget"].items()]
    return [
        f"{short_bytes(used)} of {short_bytes(limit)} budget{'' if device == 'host' else f' {device}'}"
        for device, used, limit in sizes
    ]


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
