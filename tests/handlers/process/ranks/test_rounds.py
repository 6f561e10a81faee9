"""Ranks that keep step, and one that does not."""

import math

from tsctl.handlers.process.ranks.leader import LATE, Rounds


def rounds_of(ranks: int) -> Rounds:
    rounds = Rounds()
    rounds.begin_round(7, ranks)
    return rounds


def test_a_round_is_over_when_all_ranks_have_ended_it() -> None:
    rounds = rounds_of(2)
    rounds.end(7, 1, 0.0, failed=False)
    assert not rounds.over

    rounds.end(7, 0, 0.1, failed=False)

    assert (rounds.over, rounds.deadline) == (True, math.inf)


def test_the_others_may_take_any_time_while_none_has_failed() -> None:
    rounds = rounds_of(2)
    rounds.end(7, 0, 0.0, failed=False)

    assert rounds.deadline == math.inf


def test_after_a_failure_the_others_have_a_little_time() -> None:
    rounds = rounds_of(3)
    rounds.end(7, 1, 10.0, failed=True)
    rounds.end(7, 2, 11.0, failed=True)

    assert rounds.deadline == 10.0 + LATE
    assert rounds.broken == "the handler raised in ranks 1, 2, and rank 0 did not end the same call within 5 s"


def test_ranks_that_all_fail_go_on_together() -> None:
    rounds = rounds_of(2)
    rounds.end(7, 0, 0.0, failed=True)
    rounds.end(7, 1, 0.1, failed=True)

    assert (rounds.over, rounds.deadline) == (True, math.inf)


def test_reports_on_another_round_do_not_count() -> None:
    rounds = rounds_of(1)
    rounds.end(6, 0, 0.0, failed=True)

    assert (rounds.over, rounds.deadline) == (False, math.inf)
