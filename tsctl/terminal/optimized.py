"""The outcomes of a model's optimisations, for people."""

from collections.abc import Mapping
from typing import Any

COLUMNS = ("NAME", "APPLIED", ">DRIFT", ">GAIN", ">TOOK", "NOTE")


def row_of(outcome: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of an outcome in the daemon's describe document, one for each of `COLUMNS`."""
    drift, gain = outcome["drift"], outcome.get("gain")
    notes = (_agreement(outcome), outcome.get("reason") or outcome.get("warning", ""), _origin(outcome))
    return (
        outcome["name"],
        "yes" if outcome["applied"] else "no",
        "-" if drift is None else f"{drift:.1e}",
        "-" if gain is None else f"{gain:.2f}x",
        f"{outcome['seconds']:.2f} s",
        "; ".join(filter(None, notes)),
    )


def _agreement(outcome: Mapping[str, Any]) -> str:
    agreement = outcome.get("agreement")
    return "" if agreement is None else f"best class kept: {agreement:.1%}"


def _origin(outcome: Mapping[str, Any]) -> str:
    return "known from an earlier load" if outcome.get("known") else ""


def line_of(outcome: Mapping[str, Any]) -> str:
    """Return one line about an outcome."""
    name, applied, drift, gain, _, note = row_of(outcome)
    facts = [f"{gain} as fast"] * (gain != "-") + [f"drift {drift}"] * (drift != "-")
    text = f"{name}: {'applied' if applied == 'yes' else 'left out'}"
    return "; ".join(filter(None, (", ".join([text, *facts]), note)))
