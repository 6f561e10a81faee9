"""What the demo shows, from facts alone."""

import copy
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tsctl.showcase.facts import ClassifiedPhotograph, Disturbance, MeasuredPace, ShowcaseFacts
from tsctl.showcase.screen import LINES, QUIET, WIDTH, heartbeat, pace_line, screen, spoken

ABOUT = (
    "A recurrent network reads a handwritten digit pixel by pixel: 13 514 weights, shipped with tsctl; right for 345."
)


def at_the_beginning() -> ShowcaseFacts:
    return ShowcaseFacts(bytes(64), ABOUT, 32, doing="starting a private daemon")


def moments(photograph: bool = False) -> Iterator[ShowcaseFacts]:
    """Yield the facts of one run, moment by moment, which ends with a photograph or without."""
    facts = at_the_beginning()
    yield copy.deepcopy(facts)
    facts.answer = "It reads this one as 9, with probability 0.868."
    yield copy.deepcopy(facts)
    for label, rate, batch in (("in ones", 99_999.0, 1.0), ("in batches", 999_999.0, 15.9)):
        facts.do(f"measuring {label}", 3.0)
        facts.paces.append(MeasuredPace(label))
        yield copy.deepcopy(facts)
        facts.paces[-1].per_second = rate
        yield copy.deepcopy(facts)
        facts.paces[-1].batch = batch
        yield copy.deepcopy(facts)
    facts.counting = True
    for text in ("worker killed (kill -9)", "model replaced", "daemon upgraded"):
        facts.disturbances.append(Disturbance(text, 3599.0, facts.ended))
        yield copy.deepcopy(facts)
        facts.disturbances[-1].outcome = "4194303 → 4194304"
        facts.disturbances[-1].seconds = 59.9
        facts.answered += 9_999_999
        yield copy.deepcopy(facts)
    facts.failed = 1
    yield copy.deepcopy(facts)
    if photograph:
        facts.photograph = ClassifiedPhotograph(Path("china.jpg"), (("palace", 0.35), ("bell cote", 0.19)))
    facts.lacks_photograph = not photograph
    facts.doing = ""
    facts.finished = True
    yield copy.deepcopy(facts)


@pytest.mark.parametrize("facts", [*moments(), *moments(photograph=True)])
def test_every_moment_fits_the_screen_and_nothing_on_it_moves(facts: ShowcaseFacts) -> None:
    lines = screen(facts, now=3661.0)

    assert len(lines) == LINES
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("photograph", [False, True])
def test_a_pipe_gets_lines_that_stay_true(photograph: bool) -> None:
    said = [spoken(facts) for facts in moments(photograph)]

    for earlier, later in pairwise(said):
        assert later[: len(earlier)] == earlier
    assert len(said[-1]) > len(said[0])
    assert any("palace 0.35, bell cote 0.19." in line for line in said[-1]) == photograph
    assert any("pip install" in line for line in said[-1]) != photograph


def test_the_pace_in_batches_is_compared_with_the_pace_in_ones() -> None:
    ones, batches = MeasuredPace("in ones", 800.0, 1.0), MeasuredPace("in batches", 6000.0, 15.9)

    assert pace_line(batches, [ones, batches]).split() == [
        "in",
        "batches,",
        "15.9",
        "each",
        "█" * 34,
        "6",
        "000",
        "7.5",
        "×",
    ]
    assert "×" not in pace_line(ones, [ones, batches])


def test_requests_are_counted_since_each_disturbance() -> None:
    facts = at_the_beginning()
    facts.counting = True
    facts.answered, facts.failed = 1499, 1
    facts.disturbances = [Disturbance("killed", 12.0, 200), Disturbance("replaced", 75.0, 1400)]

    lines = screen(facts, now=80.0)

    assert [line.split() for line in lines if "killed" in line] == [["0:12", "killed", "…", "1", "300"]]
    assert [line.split() for line in lines if "replaced" in line] == [["1:15", "replaced", "…", "100"]]
    assert "  answered 1 499   failed 1" in lines


def test_the_commands_for_an_own_file_come_at_the_end_only() -> None:
    facts = at_the_beginning()

    before = screen(facts, now=1.0)
    facts.doing, facts.finished = "", True
    after = screen(facts, now=2.0)

    assert not any("tsctl serve" in line for line in before)
    assert [line.split()[0] for line in after[-3:]] == ["tsctl", "tsctl", "curl"]


def test_the_current_activity_moves_and_counts_seconds() -> None:
    facts = at_the_beginning()
    facts.do("upgrading the daemon", 10.0)

    shown = {line for now in (10.0, 10.2, 12.0) for line in screen(facts, now) if "upgrading" in line}

    assert len(shown) == 3
    assert any(line.endswith("upgrading the daemon, 2 s") for line in shown)


def test_a_silent_pipe_is_told_the_activity_and_the_count() -> None:
    facts = at_the_beginning()
    facts.do("upgrading the daemon", 10.0)
    facts.counting, facts.answered = True, 12_345

    assert heartbeat(facts, 10.0 + QUIET) == "  … upgrading the daemon, 2 s  answered 12 345   failed 0"
