"""The output of `tsctl optimize`: a row for each set of optimisations, and the one to apply."""

from collections.abc import Mapping
from typing import Any

from tsctl import render
from tsctl.render import bytes_text, number_text

_NONE = "-"
_UNSURE = "unsure: other programs disturbed the measurement; repeat this on a quiet machine"


def show(found: Mapping[str, Any]) -> None:
    """Print the table, the reasons of what was refused, and the recommended set."""
    size, rows = found["batchSize"], found["rows"]
    columns = ("OPTIMIZE", f">BATCH OF {size}", ">REQ/S", ">GAIN", ">DRIFT", ">AGREE", ">MEMORY", ">LOAD")
    plain = rows[0]["perSecond"]  # None if it was refused
    render.table(columns, [_cells(row, plain) for row in rows], drop=("LOAD", "MEMORY"))
    for row in rows:
        note = f"refused: {row['refused']}" if row["refused"] else row["missing"] or ("" if row["sure"] else _UNSURE)
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


def _cells(row: Mapping[str, Any], plain: float | None) -> tuple[str, ...]:
    name = f"{row['optimize']} (now)" if row["now"] else row["optimize"]
    if row["seconds"] is None:
        return (name, "refused", *[_NONE] * 6)
    drift, agreement = row["drift"], row["agreement"]
    return (
        name,
        _ms(row["seconds"]),
        number_text(row["perSecond"]),
        _NONE if plain is None else f"{row['perSecond'] / plain:.2f}x",
        _NONE if drift is None else f"{drift:.1e}",
        _NONE if agreement is None else f"{agreement:.1%}",
        bytes_text(row["memory"]),
        f"{row['load']:.1f} s",
    )


def _ms(seconds: float) -> str:
    return f"{number_text(seconds * 1000)} ms"
