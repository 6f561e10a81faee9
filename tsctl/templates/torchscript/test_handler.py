"""Run with `pytest`: the class itself, and served by a private daemon."""

from pathlib import Path

import tsctl

from handler import Scorer

FOLDER = Path(__file__).parent


def test_every_row_of_a_batch_has_an_answer() -> None:
    scorer = Scorer()
    scorer.load()

    assert scorer.predict([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]) == [1.5, 4.5]


def test_the_served_class_answers() -> None:
    with tsctl.serve(FOLDER / "handler.py") as model:
        assert model.predict(FOLDER / "sample.json") == 10.5
