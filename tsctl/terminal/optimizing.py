"""The output of `tsctl optimize`: a row for each set of optimisations, and the one to apply."""

from collections.abc import Mapping
from typing import Any

from tsctl import render
from tsctl.render import bytes_text, number_text

LITTLE = 0.10  # by how much the plain model's time may differ at the end
_NONE = "-"


def show(found: Mapping[str, Any]) -> None:
    """Print the table, the reasons of what was refused, and the recommended set."""
    size, rows = found["batchSize"], found["rows"]
    columns = ("OPTIMIZE", f">BATCH OF {size}", ">REQ/S", ">GAIN", ">DRIFT", ">AGREE", ">MEMORY", ">LOAD")
    plain = rows[0]["perSecond"]
    render.table(columns, [_cells(row, plain) for row in rows], drop=("LOAD", "MEMORY"))
    for row in rows:
        note = f"refused: {row['refused']}" if row["refused"] else row["missing"]
        if note:
            render.hanging(f"{row['optimize']}: {note}", 2)
    for line in verdict(found):
        render.hanging(line, 2)


def verdict(found: Mapping[str, Any]) -> list[str]:
    """Return the lines about the recommended set, and how to apply it."""
    best = found["recommended"]
    if best is None:
        return ["nothing is faster than what is registered"]
    return [f"fastest within the tolerances: {best}; apply with:", f"  {found['command']}"]


def caution(found: Mapping[str, Any]) -> str:
    """Return a sentence if the machine changed while it measured; empty if it did not."""
    if found["changed"] <= LITTLE:
        return ""
    first, last = (_ms(seconds) for seconds in (found["rows"][0]["seconds"], found["again"]))
    return (
        f"the machine changed by {found['changed']:.0%} meanwhile: a batch of the plain model took {first} at the start"
        f" and {last} at the end; repeat this on a quiet machine"
    )


def warn_of_change(found: Mapping[str, Any]) -> None:
    """Print the caution, if any, to stderr."""
    text = caution(found)
    if text:
        render.note(text)


def _cells(row: Mapping[str, Any], plain: float) -> tuple[str, ...]:
    name = f"{row['optimize']} (now)" if row["now"] else row["optimize"]
    if row["seconds"] is None:
        return (name, "refused", *[_NONE] * 6)
    drift, agreement = row["drift"], row["agreement"]
    return (
        name,
        _ms(row["seconds"]),
        number_text(row["perSecond"]),
        f"{row['perSecond'] / plain:.2f}x",
        _NONE if drift is None else f"{drift:.1e}",
        _NONE if agreement is None else f"{agreement:.1%}",
        bytes_text(row["memory"]),
        f"{row['load']:.1f} s",
    )


def _ms(seconds: float) -> str:
    return f"{number_text(seconds * 1000)} ms"
