"""The checker accepts what can have happened, and finds what cannot."""

import random

import pytest

from tests.lab.history.checker import Operation, Outcome, gaps
from tests.lab.history.clients import random_command
from tests.lab.history.commands import (
    BROKEN,
    Change,
    Command,
    Register,
    Registered,
    Retry,
    SetDefault,
    Unregister,
    Version,
)

DONE, REFUSED, UNKNOWN = Outcome
NOTHING: Registered = frozenset()
A = Version("a", 1, 0)


def state(default: str = "1", **versions: Version) -> Registered:
    """Make the state of the model `m`; `v1` is its version 1."""
    return frozenset((("m", name[1:]), what._replace(default=name[1:] == default)) for name, what in versions.items())


def done(command: Command, began: float, ended: float) -> Operation:
    return Operation(0, command, DONE, began, ended)


def lost(command: Command, began: float) -> Operation:
    """A command that was running when the daemon was killed."""
    return Operation(0, command, UNKNOWN, began)


REGISTER, OTHER = Register("m", "1", A), Register("m", "2", A)


SCALE, AGAIN = Change("m", "1", "workers", 3), Change("m", "1", "workers", 4)
SET = Change("m", "1", "batch_size", 8)
B = Version("b", 1, 0)
REPLACED = Register("m", "1", B, replace=True)


def error(command: Command, began: float, ended: float) -> Operation:
    """A command that was answered with an error of the server."""
    return Operation(0, command, UNKNOWN, began, ended)


# fmt: off
EXPLAINED = {
    "nothing happened": (NOTHING, [], NOTHING),
    "what was done is there": (NOTHING, [done(REGISTER, 1, 2)], state(v1=A)),
    "what was not answered may be there": (NOTHING, [lost(REGISTER, 1)], state(v1=A)),
    "or not": (NOTHING, [lost(REGISTER, 1)], NOTHING),
    "what was refused changes nothing": (NOTHING, [Operation(0, REGISTER, REFUSED, 1, 2)], NOTHING),
    "of two at the same time the shorter may be first": (
        NOTHING, [done(REGISTER, 1, 4), done(OTHER, 2, 3)], state("2", v1=A, v2=A)),
    "of what was not answered any part": (
        NOTHING, [done(REGISTER, 1, 2), lost(SCALE, 3), lost(SET, 3)],
        state(v1=Version("a", 8, 0))),
    "what was not answered makes room for what was": (
        state(v1=A), [lost(Unregister("m", "1"), 1), done(Register("m", "1", B), 2, 3)], state(v1=B)),
    "an error of the server leaves both possible": (
        state(v1=A), [done(Unregister("m", "1"), 1, 2), error(REGISTER, 1, 5)], NOTHING),
    "what has failed makes room for a registration": (
        state(v1=Version(BROKEN, 1, 1)), [done(REGISTER, 1, 2)], state(v1=A)),
}
IMPOSSIBLE = {
    "a registration that was answered is lost": (NOTHING, [done(REGISTER, 1, 2)], NOTHING),
    "a scale that was answered is lost": (state(v1=A), [done(SCALE, 1, 2)], state(v1=A)),
    "a replacement that was answered is lost": (state(v1=A), [done(REPLACED, 1, 2)], state(v1=A)),
    "a model is resurrected": (state(v1=A), [done(Unregister("m", "1"), 1, 2)], state(v1=A)),
    "the default went back": (state(v1=A, v2=A), [done(SetDefault("m", "2"), 1, 2)], state("1", v1=A, v2=A)),
    "a model that nobody asked for": (NOTHING, [], state(v1=A)),
    "a value that nobody asked for": (state(v1=A), [lost(SET, 1)], state(v1=Version("a", 16, 0))),
    "what was refused is there": (NOTHING, [Operation(0, REGISTER, REFUSED, 1, 2)], state(v1=A)),
    "the later of two has not had the last word": (
        state(v1=A), [done(SCALE, 1, 2), done(AGAIN, 3, 4)], state(v1=Version("a", 1, 3))),
    "an error of the server took effect after its answer": (
        state(v1=A), [error(SCALE, 1, 2), done(AGAIN, 3, 4)], state(v1=Version("a", 1, 3))),
    "a default went before others": (state(v1=A, v2=A), [done(Unregister("m", "1"), 1, 2)], state("2", v2=A)),
    "what was there was registered again": (state(v1=A), [done(REGISTER, 1, 2)], state(v1=A)),
    "what is not there was tried again": (NOTHING, [done(Retry("m", "1"), 1, 2)], NOTHING),
    "a change brought back what was gone": (
        NOTHING, [done(REGISTER, 1, 2), done(Unregister("m", "1"), 3, 4), lost(SCALE, 5)],
        state(v1=Version("a", 1, 3))),
}
# fmt: on


@pytest.mark.parametrize(("before", "history", "found"), EXPLAINED.values(), ids=EXPLAINED)
def test_what_can_have_happened_is_explained(before: Registered, history: list[Operation], found: Registered) -> None:
    assert gaps(before, history, found) == {}


@pytest.mark.parametrize(("before", "history", "found"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_cannot_have_happened_is_found(before: Registered, history: list[Operation], found: Registered) -> None:
    assert [*gaps(before, history, found)] == ["m"]


def simulated(seed: int) -> tuple[list[Operation], Registered]:
    """Make a history of a daemon without faults, on a clock of whole numbers: each client one command at a time."""
    rng = random.Random(seed)
    registered, history, now = NOTHING, [], 0.0
    running: dict[int, tuple[Command, float, Registered | None]] = {}
    left = [30] * 4
    while any(left) or running:
        now += 1
        client = rng.randrange(len(left))
        if client in running:
            command, began, after = running.pop(client)
            history.append(Operation(client, command, REFUSED if after is None else DONE, began, now))
        elif left[client]:
            left[client] -= 1
            command = random_command(rng)
            after = command.applied(registered)
            registered = registered if after is None else after
            running[client] = (command, now, after)
    return history, registered


@pytest.mark.parametrize("seed", range(20))
def test_every_history_of_a_daemon_without_faults_is_explained(seed: int) -> None:
    history, found = simulated(seed)

    assert gaps(NOTHING, history, found) == {}


@pytest.mark.parametrize("seed", range(20))
def test_a_daemon_that_forgets_its_last_change_is_found(seed: int) -> None:
    """The last command to be answered comes after all others, so only one state is possible."""
    history, found = simulated(seed)
    last = max(operation.ended for operation in history)
    extra = Register("m", "3", A, replace=True)

    assert gaps(NOTHING, [*history, done(extra, last + 1, last + 2)], extra.applied(found) or found) == {}
    assert [*gaps(NOTHING, [*history, done(extra, last + 1, last + 2)], found)] == ["m"]
