"""A trial begins where it is worth it, and not while requests come."""

import json
import math

from tests.kit.said import said_in
from tsctl.daemon.extensions.optimizing.due import (
    COMPILING,
    LEAST_BUSY,
    Moment,
    is_worth_it,
    short_of_memory,
    waits_for,
)

ASKED = Moment(
    asked=True, ready=True, answered=1, busy=0.1, idle=5.0, waiting=5.0, pause=-math.inf, elsewhere=False
)  # fmt: skip
UNASKED = ASKED._replace(asked=False, answered=100_000, busy=LEAST_BUSY)


@said_in("waits.txt")
def test_what_a_trial_waits_for(given: str) -> str:
    changes = json.loads(given)
    return waits_for((ASKED if changes.get("asked", True) else UNASKED)._replace(**changes))


def test_the_patience_begins_when_it_is_worth_it_not_when_another_trial_ends() -> None:
    assert is_worth_it(ASKED._replace(elsewhere=True, idle=0.0))
    assert not is_worth_it(ASKED._replace(pause=1.0))


def test_there_must_be_room_for_three_workers_and_a_compiler() -> None:
    mib = 1 << 20

    assert short_of_memory(100 * mib, 300 * mib + COMPILING) == ""
    text = short_of_memory(100 * mib, 300 * mib + COMPILING - 1)
    assert text.startswith("memory: a trial takes about 1.29 GiB, and ")
