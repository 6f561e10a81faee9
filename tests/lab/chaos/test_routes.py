"""A few seconds of routes and rollouts that change while workers are killed; `make chaos-routes` runs ten minutes."""

from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.lab.chaos.routes import Epoch, Seen, Storm, check, storm_over


@pytest.mark.slow
@pytest.mark.heavy
def test_nothing_is_unanswered_or_answered_by_another_version(tmp_path: Path) -> None:
    made = storm_over(tmp_path, 12.0, seed=5, upgrade_every=60.0)

    assert made.wrong == []
    assert made.told["workers killed"] > 5
    assert made.told["right, of a named version"] > 0


@pytest.mark.parametrize(
    ("epoch", "answers", "wrong"),
    [
        pytest.param(Epoch(0, 9, frozenset("12"), (("1", 1), ("2", 1))), "12" * 50, 0, id="as the weights say"),
        pytest.param(Epoch(0, 9, frozenset("12"), (("1", 1), ("2", 1))), "1" * 90 + "2" * 10, 2, id="of other weights"),
        pytest.param(Epoch(0, 9, frozenset("12")), "1" * 90 + "2" * 10, 0, id="while a rollout steers"),
        pytest.param(Epoch(0, 9, frozenset("1"), (("1", 1),)), "1112", 1, id="by a version that has none"),
        pytest.param(Epoch(0, 9, frozenset("12"), (("1", 1), ("2", 1)), True), "1" * 9, 3, id="of clients that moved"),
        pytest.param(Epoch(5, 9, frozenset("1"), (("1", 1),)), "2", 0, id="at another time"),
    ],
)
def test_the_check_finds_wrong_answers(tmp_path: Path, epoch: Epoch, answers: str, wrong: int) -> None:
    storm = Storm(Served(tmp_path), 1, 1.0)
    storm.epochs.append(epoch)
    storm.seen = [Seen(1, 2, f"{user}", version) for user, version in enumerate(answers)]

    check(storm)

    assert len(storm.wrong) == wrong
