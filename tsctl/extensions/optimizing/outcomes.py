"""The outcomes of a model's optimisations, and its trial of `optimize: auto`, for people."""

from collections.abc import Mapping
from typing import Any

from tsctl.render import bytes_text, duration_text, number_text

COLUMNS = ("NAME", "APPLIED", ">DRIFT", ">TOOK", "NOTE")


def row_of(outcome: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of an outcome in the daemon's describe document, one for each of `COLUMNS`."""
    drift = outcome["drift"]
    notes = (_agreement(outcome), outcome.get("reason", ""), _origin(outcome))
    return (
        outcome["name"],
        "yes" if outcome["applied"] else "no",
        "-" if drift is None else f"{drift:.1e}",
        f"{outcome['seconds']:.2f} s",
        "; ".join(filter(None, notes)),
    )


def _agreement(outcome: Mapping[str, Any]) -> str:
    agreement, wanted = outcome.get("agreement"), outcome.get("agreementWanted")
    inputs = f" on {outcome['agreementInputs']} inputs" if "agreementInputs" in outcome else ""
    least = "" if wanted is None else f" (at least {wanted:.1%} wanted)"
    return "" if agreement is None else f"best class kept: {agreement:.1%}{inputs}{least}"


def _origin(outcome: Mapping[str, Any]) -> str:
    return "known from an earlier load" if outcome.get("known") else ""


def line_of(outcome: Mapping[str, Any]) -> str:
    name, applied, drift, _, note = row_of(outcome)
    facts = [f"drift {drift}"] * (drift != "-")
    text = f"{name}: {'applied' if applied == 'yes' else 'left out'}"
    return "; ".join(filter(None, (", ".join([text, *facts]), note)))


def trial_lines(trial: Mapping[str, Any] | None, now: float) -> list[str]:
    """Return the lines about a trial: its state, and each set that was compared; none if there is no trial.

    Args:
        trial: as in the daemon's describe document.
        now: seconds since the epoch.
    """
    if trial is None:
        return []
    ago = f" {duration_text(max(0.0, now - trial['at']))} ago" if trial["at"] else ""
    first = ": ".join(filter(None, (f"trial {trial['state']}{ago}", trial["text"])))
    return [first, *map(_compared, trial["rows"])]


def coming_trial(trial: Mapping[str, Any] | None) -> list[str]:
    """Return the line about a trial that `optimize: auto` asks for, before it is made; none if nobody asked."""
    if trial is None or not trial["asked"]:
        return []
    if not trial["sets"]:
        return [f"auto: no trial is made: {trial['text']}"]
    return [f"auto: compares {'; '.join(trial['sets'])} while the model serves"]


def _compared(row: Mapping[str, Any]) -> str:
    """Return a line about one set, such as `compile: 56.9 requests/s, 1.12x, 767.4 MiB, loads in 1.6 s`."""
    if row["perSecond"] is None:
        return f"  {row['optimize']}: refused: {row['refused']}"
    facts = [
        f"{number_text(row['perSecond'])} requests/s",
        f"{row['gain']:.2f}x",
        "" if row["drift"] is None else f"drift {row['drift']:.1e}",
        "" if row["agreement"] is None else f"best class kept: {row['agreement']:.1%}",
        bytes_text(row["memory"]),
        f"loads in {row['load']:.1f} s",
        row["missing"],
    ]
    return f"  {row['optimize']}: {', '.join(filter(None, facts))}"
