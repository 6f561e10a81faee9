"""Whether a history explains what was found after it: a search for one order in which all of it could have happened.

A command takes effect at one moment between its beginning and its answer. One that was answered as done has
taken effect; one that was refused has not; of one that was not answered (the daemon was killed), or was
answered with an error of the server, nobody knows: it may have, or not. What was found must be what some such
order leaves behind: nothing that was answered is lost, nothing comes back, and nothing is there that nobody
asked for. (Linearisability, as Jepsen checks it; the search is that of Wing and Gong, with memory.)
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from tests.lab.history.commands import Command, Registered, only


class Outcome(Enum):
    DONE = "done"  # it has taken effect before it was answered
    REFUSED = "refused"  # it has not taken effect, and will not
    UNKNOWN = "unknown"  # it has taken effect before it ended, or not


@dataclass(frozen=True, slots=True)
class Operation:
    """One command of one client.

    Attributes:
        began, ended: moments on one clock; `ended` is inf if it was never answered.
        note: what was answered, for people.
    """

    client: int
    command: Command
    outcome: Outcome
    began: float
    ended: float = math.inf
    note: str = ""

    def __str__(self) -> str:
        ended = "…" if self.ended == math.inf else f"{self.ended:.4f}"
        return f"{self.began:.4f} – {ended}  client {self.client}  {self.outcome.value:8} {self.command}  {self.note}"


@dataclass(frozen=True, slots=True)
class Gap:
    """Where no order goes on.

    Attributes:
        reached: what is registered at the furthest point that any order reaches.
        left: the operations that come after it, by when they began; none if only the end does not fit.
    """

    reached: Registered
    left: Sequence[Operation]


def gaps(before: Registered, history: Sequence[Operation], found: Registered) -> dict[str, Gap]:
    """Name the models that `history`, beginning with `before`, cannot have left as they were found.

    Models know nothing of each other, so that each has an order of its own if there is one for all.
    """
    names = {key[0] for key, _ in before | found} | {each.command.name for each in history}
    histories = {name: [each for each in history if each.command.name == name] for name in names}
    searched = {name: _search(only(name, before), histories[name], only(name, found)) for name in sorted(names)}
    return {name: gap for name, gap in searched.items() if gap is not None}


def _search(before: Registered, history: Sequence[Operation], found: Registered) -> Gap | None:
    operations = sorted((each for each in history if each.outcome is not Outcome.REFUSED), key=lambda each: each.began)
    owed = sum(1 << index for index, each in enumerate(operations) if each.outcome is Outcome.DONE)
    seen: set[tuple[int, Registered]] = set()
    todo = [(0, before)]
    furthest = (0, before)
    while todo:
        done, state = todo.pop()
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if state == found and done & owed == owed:
            return None
        furthest = max(furthest, (done, state), key=lambda each: (each[0] & owed).bit_count())
        for index in _next(operations, done):
            after = operations[index].command.applied(state)
            if after is not None:
                todo.append((done | 1 << index, after))
            if operations[index].outcome is Outcome.UNKNOWN and operations[index].ended < math.inf:
                todo.append((done | 1 << index, state))  # it never happened; one without an end may just be left
    done, state = furthest
    return Gap(state, [each for index, each in enumerate(operations) if not done >> index & 1])


def _next(operations: Sequence[Operation], done: int) -> Iterator[int]:
    """Which operations may be the next: those that began before any of the remaining ones had ended."""
    first_end = math.inf
    first = (~done & (done + 1)).bit_length() - 1  # all before it are done
    for index in range(first, len(operations)):
        each = operations[index]
        if each.began > first_end:
            return
        if not done >> index & 1:
            first_end = min(first_end, each.ended)
            yield index
