"""The selection and the opened model, the effect of keys, and the keys in a terminal's bytes.

          Enter, →                     s: the next order
MODELS ─────────────▶ ONE MODEL        q: end, in both
       ◀─────────────
          Esc, ←, Backspace, Enter
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tsctl.extensions.live.figures import Key, ModelFigures
from tsctl.trouble import troubles_of

_NUMBERS: dict[str, Callable[[ModelFigures], float]] = {
    "name": lambda _: 0.0, "requests": lambda each: each.per_second, "errors": lambda each: each.errors,
    "p99": lambda each: each.p99 or 0.0, "queue": lambda each: each.now["queued"],
}  # fmt: skip
ORDERS = tuple(_NUMBERS)
PAGE = 10  # models

# A control sequence (ECMA-48), one of two bytes, or a character.
_KEY = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO[A-Za-z]|\x1b|[^\x1b]", re.DOTALL)
_PART = re.compile(r"\x1b(\[[0-9;?]*[ -/]*|O)?\Z")
_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "k": "up", "\x1b[B": "down", "\x1bOB": "down", "j": "down",
    "\x1b[C": "open", "\x1bOC": "open", "\r": "open", "\n": "open",
    "\x1b[D": "back", "\x1bOD": "back", "\x1b": "back", "\x7f": "back", "\b": "back",
    "\x1b[5~": "page-up", "\x1b[6~": "page-down", " ": "page-down",
    "\x1b[H": "first", "\x1bOH": "first", "\x1b[1~": "first", "g": "first",
    "\x1b[F": "last", "\x1bOF": "last", "\x1b[4~": "last", "G": "last",
    "s": "sort", "S": "sort", "q": "quit", "Q": "quit",
}  # fmt: skip


def keys_of(text: str) -> list[str]:
    """Return the names of the keys in what a terminal has sent; unknown ones are left out."""
    return [_NAMES[each] for each in _KEY.findall(text) if each in _NAMES]


def is_cut(text: str) -> bool:
    """Return whether a text ends within a key: with the beginning of a sequence, or an escape that may be one."""
    return _PART.search(text) is not None


@dataclass(frozen=True, slots=True)
class View:
    """The selected model, whether it is opened, and the order of the models.

    Attributes:
        selected: a model; None for the first one.
        opened: whether that model is shown alone.
        order: one of `ORDERS`.
    """

    selected: Key | None = None
    opened: bool = False
    order: str = ORDERS[0]


def ordered(models: Sequence[ModelFigures], order: str) -> list[ModelFigures]:
    """Return the models in this order, by name or the largest number first; in any order, those in trouble first."""
    return sorted(models, key=lambda each: (not troubles_of(each.now), -_NUMBERS[order](each), each.key))


def next_order(order: str) -> str:
    """Return the order after this one."""
    return ORDERS[(ORDERS.index(order) + 1) % len(ORDERS)]


def selected_index(view: View, models: Sequence[ModelFigures]) -> int:
    """Return where the selected model is in an order; 0 if it is gone."""
    return next((index for index, each in enumerate(models) if each.key == view.selected), 0)


def pressed(view: View, key: str, models: Sequence[ModelFigures]) -> View:
    """Return the view after a key, except "quit", which the caller obeys.

    Args:
        models: in the view's order.
    """
    if key == "sort":
        return replace(view, order=next_order(view.order))
    if not models:
        return replace(view, opened=False)
    at = selected_index(view, models)
    if key == "back" or (key == "open" and view.opened):
        return replace(view, opened=False)
    if key == "open":
        return replace(view, selected=models[at].key, opened=True)
    steps = {"up": -1, "down": 1, "page-up": -PAGE, "page-down": PAGE, "first": -len(models), "last": len(models)}
    to = min(max(0, at + steps.get(key, 0)), len(models) - 1)
    return replace(view, selected=models[to].key)
