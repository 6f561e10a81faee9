"""Which requests may end workers, as arithmetic."""

import pytest

from tsctl.daemon.extensions.quarantine.quarantine import DEATHS, KEPT, MOST, REFUSED, Suspects

NOW = 1000.0
A, B = b"a", b"b"


def died(suspects: Suspects, *deaths: bool, digest: bytes = A, size: int = 5, now: float = NOW) -> None:
    for alone in deaths:
        suspects.died(digest, size, alone, "it exited with code 7", now)


@pytest.mark.parametrize(
    ("deaths", "seconds"),
    [
        pytest.param([True], 0.0, id="once alone is no proof"),
        pytest.param([True, True], 60.0, id="twice alone is"),
        pytest.param([False] * 10, 0.0, id="in company it is never proved"),
        pytest.param([False, True, False, True], 60.0, id="only those alone count"),
    ],
)
def test_for_how_long_a_request_is_refused(deaths: list[bool], seconds: float) -> None:
    suspects = Suspects()

    died(suspects, *deaths)

    suspect = suspects.find(A, NOW)
    assert suspect is not None and suspect.refused_for(NOW) == seconds
    assert suspects.refused(NOW) == (seconds > 0)
    assert (DEATHS, REFUSED) == (2, 60.0)


def test_after_the_minute_it_may_run_and_one_more_end_is_enough() -> None:
    suspects = Suspects()
    died(suspects, True, True)

    suspect = suspects.find(A, NOW + REFUSED)
    assert suspect is not None and suspect.refused_for(NOW + REFUSED) == 0.0

    died(suspects, True, now=NOW + REFUSED)
    assert suspect.refused_for(NOW + REFUSED + 1) == 59.0


def test_an_answer_clears_it_and_no_other() -> None:
    suspects = Suspects()
    died(suspects, True, True)
    died(suspects, True, digest=B)

    suspects.answered(A)
    suspects.answered(b"unknown")

    assert suspects.find(A, NOW) is None and suspects.find(B, NOW) is not None


def test_only_sizes_of_suspects_are_worth_a_look() -> None:
    suspects = Suspects()
    died(suspects, True, digest=A, size=5)
    died(suspects, True, digest=B, size=5)
    assert suspects.has_size(5) and not suspects.has_size(6)

    suspects.answered(A)
    assert suspects.has_size(5)
    suspects.answered(B)
    assert not suspects.has_size(5) and not suspects


def test_it_is_forgotten_some_time_after_its_last_worker() -> None:
    suspects = Suspects()
    died(suspects, True, now=NOW)
    died(suspects, True, digest=B, now=NOW + 1)

    assert suspects.find(B, NOW + KEPT) is not None
    assert len(suspects) == 1 and suspects.find(A, NOW + KEPT) is None


def test_there_is_room_for_so_many_and_the_one_that_died_first_goes() -> None:
    suspects = Suspects()
    for number in range(MOST):
        died(suspects, True, digest=b"%d" % number, size=number, now=NOW + number / MOST)
    died(suspects, True, digest=b"0", size=0, now=NOW + 1)

    died(suspects, True, digest=b"new", size=5000, now=NOW + 2)

    assert len(suspects) == MOST
    assert suspects.find(b"1", NOW + 2) is None and not suspects.has_size(1)
    assert suspects.find(b"0", NOW + 2) is not None and suspects.find(b"new", NOW + 2) is not None


def test_clearing_forgets_all() -> None:
    suspects = Suspects()
    died(suspects, True, True)

    suspects.clear()

    assert not suspects and not suspects.has_size(5) and suspects.find(A, NOW) is None
