"""The state of a version's autoscaling in words."""

from collections.abc import Mapping
from typing import Any

from tsctl.render import duration_text


def autoscaling_text(scaling: Mapping[str, Any], now: float) -> str:
    """Return the state of a version's autoscaling, from the daemon's document, in words; `now` since the epoch."""
    wait = scaling["predictedWaitMs"]
    said = [
        f"{scaling['minWorkers']} to {scaling['maxWorkers']} workers",
        f"target {scaling['targetQueueMs']:g} ms",
        "no decision yet" if wait is None else f"predicted wait {wait:.0f} ms",
    ]
    if scaling["blocked"]:
        said.append(scaling["reason"].rpartition(", but ")[2])
    elif scaling["quietSeconds"] is not None:
        said.append(f"quiet for {scaling['quietSeconds']:.0f} of {scaling['takenAwayAfter']:.0f} s")
    change = scaling["lastChange"]
    if change is not None:
        ago = duration_text(max(0.0, now - change["at"]))
        said.append(f"from {change['before']} to {change['after']} {ago} ago ({change['reason']})")
    return ", ".join(said)
