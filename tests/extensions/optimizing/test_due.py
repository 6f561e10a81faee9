"""A trial begins where it is worth it, and not while requests come."""

import math

import pytest

from tsctl.daemon.extensions.optimizing.due import (
    COMPILING,
    COST,
    LEAST_BUSY,
    LIKELY_GAIN,
    PATIENCE,
    Moment,
    is_worth_it,
    short_of_memory,
    waits_for,
)

ASKED = Moment(
    asked=True, ready=True, answered=1, busy=0.1, idle=5.0, waiting=5.0, pause=-math.inf, elsewhere=False
)  # fmt: skip
UNASKED = ASKED._replace(asked=False, answered=100_000, busy=LEAST_BUSY)


@pytest.mark.parametrize(
    ("moment", "waits"),
    [
        pytest.param(ASKED, "", id="one that was asked for begins after an answer and a quiet moment"),
        pytest.param(ASKED._replace(answered=0), "the first answer", id="not before the first answer"),
        pytest.param(ASKED._replace(ready=False), "all workers to be ready", id="not while workers load"),
        pytest.param(ASKED._replace(elsewhere=True), "the trial of another model", id="one at a time"),
        pytest.param(ASKED._replace(pause=61.0), "another attempt, in 61 s", id="not soon after a failure"),
        pytest.param(ASKED._replace(pause=0.0), "", id="but after the pause"),
        pytest.param(ASKED._replace(idle=2.9), "3 s without a request", id="not while requests come"),
        pytest.param(ASKED._replace(idle=0.0, waiting=PATIENCE), "", id="unless they always come"),
        pytest.param(UNASKED, "", id="one that nobody asked for begins after much work"),
        pytest.param(
            UNASKED._replace(busy=LEAST_BUSY - 1),
            "more traffic: its workers have been busy for 1199 of 1200 s",
            id="and not before",
        ),
        pytest.param(
            UNASKED._replace(busy=1.0, idle=math.inf, waiting=math.inf),
            "more traffic: its workers have been busy for 1 of 1200 s",
            id="however long it is idle",
        ),
    ],
)
def test_what_a_trial_waits_for(moment: Moment, waits: str) -> None:
    assert waits_for(moment) == waits


def test_it_is_worth_it_once_a_likely_gain_would_have_saved_what_it_costs() -> None:
    assert pytest.approx(COST) == LEAST_BUSY * LIKELY_GAIN
    assert is_worth_it(UNASKED) and not is_worth_it(UNASKED._replace(busy=LEAST_BUSY - 1))


def test_the_patience_begins_when_it_is_worth_it_not_when_another_trial_ends() -> None:
    assert is_worth_it(ASKED._replace(elsewhere=True, idle=0.0))
    assert not is_worth_it(ASKED._replace(pause=1.0))


def test_there_must_be_room_for_three_workers_and_a_compiler() -> None:
    mib = 1 << 20

    assert short_of_memory(100 * mib, 300 * mib + COMPILING) == ""
    text = short_of_memory(100 * mib, 300 * mib + COMPILING - 1)
    assert text.startswith("memory: a trial takes about 1.29 GiB, and ")
