"""Run with `pytest`: the class itself, and served by a private daemon."""

from pathlib import Path

import tsctl

from handler import Mood

FOLDER = Path(__file__).parent


def test_every_text_of_a_batch_has_an_answer() -> None:
    mood = Mood()
    mood.load()

    assert mood.predict(["Fast and good.", "slow", ""]) == [
        {"mood": "good", "score": 2},
        {"mood": "bad", "score": -1},
        {"mood": "neutral", "score": 0},
    ]


def test_the_served_class_answers() -> None:
    with tsctl.serve(FOLDER / "handler.py") as model:
        assert model.predict(FOLDER / "sample.txt") == {"mood": "good", "score": 3}
