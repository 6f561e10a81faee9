"""Run with `pytest`: the function itself, and served by a private daemon."""

from pathlib import Path

import tsctl

from handler import predict

FOLDER = Path(__file__).parent


def test_every_row_of_a_batch_has_an_answer() -> None:
    assert predict([[1.0, 2.0, 6.0], [4.0]]) == [{"mean": 3.0, "largest": 6.0}, {"mean": 4.0, "largest": 4.0}]


def test_the_served_function_answers() -> None:
    with tsctl.serve(FOLDER / "handler.py") as model:
        assert model.predict(FOLDER / "sample.json") == {"mean": 3.0, "largest": 6.0}
