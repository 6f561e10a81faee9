"""A rollout, from the daemon's document, as lines: its step, and what the test of each condition says."""

from collections.abc import Mapping
from typing import Any

_SHOWN_ABOVE = "not shown yet: "


def rollout_heading(rollout: Mapping[str, Any]) -> str:
    """Return the state and the steps, the present one in brackets: `stepping, step 2 of 3: 1 [10] 100 %`."""
    steps = " ".join(f"[{step:g}]" if step == rollout["share"] else f"{step:g}" for step in rollout["steps"])
    at = f", step {rollout['step'] + 1} of {len(rollout['steps'])}" if rollout["state"] == "stepping" else ""
    return f"{rollout['state']}{at}: {steps} %"


def evidence_lines(rollout: Mapping[str, Any]) -> list[str]:
    """Return a line for each condition, and what the step waits for, or why the rollout has ended."""
    lines = []
    for each in rollout["findings"]:
        if each["requests"] is None:
            counted = "waits for more answers of the versions before"
        else:
            counted = f"{each['bad']} of {each['requests']}"
        coming = f", {each['needed']} good answers to come" if each["verdict"] == "open" and each["needed"] else ""
        lines.append(f"{each['condition']:12} {each['verdict']:5} {counted}{coming}")
    waits = rollout["waitsFor"] or ""
    return [*lines, *filter(None, ("" if waits.startswith(_SHOWN_ABOVE) else waits, rollout["reason"]))]
