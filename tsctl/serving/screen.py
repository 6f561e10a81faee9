"""The texts of `tsctl serve`: what is shown of a served model, and of what happens to it later."""

from collections.abc import Sequence
from typing import NamedTuple


class Shown(NamedTuple):
    """A served model, as people see it.

    Attributes:
        takes: declared inputs, `texts: list[str]`; empty if the handler declares none.
        max_delay: milliseconds.
        certain: whether the sample request fits the model.
    """

    name: str
    version: str
    handler: str
    takes: str
    batch_size: int
    max_delay: float
    policy: str
    url: str
    notes: Sequence[str]
    curl: str
    certain: bool


def model_lines(model: Shown) -> list[str]:
    """Return the lines about one model; the last one is the command that asks the model."""
    delay = "no delay" if model.batch_size == 1 else f"{model.max_delay:g} ms"
    requests = "1 request" if model.batch_size == 1 else f"up to {model.batch_size} requests"
    facts = [
        ("model", f"{model.name} {model.version}"),
        ("handler", model.handler),
        ("takes", model.takes),
        ("batches", f"{requests} · {delay} · {model.policy}"),
        ("URL", model.url),
        *(("note", note) for note in model.notes),
    ]
    lines = [f"{name:<9}{text}" for name, text in facts if text]
    return [*lines, "" if model.certain else "with data of your own in place of this sample:", model.curl]


def watch_line(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"watching {shown}: what you save is served"
