"""Run with `pytest`: the function itself, and served by a private daemon."""

from pathlib import Path

import tsctl
from PIL import Image

from handler import predict

FOLDER = Path(__file__).parent


def test_every_image_of_a_batch_has_an_answer() -> None:
    answers = predict([Image.new("RGB", (4, 2), (10, 20, 30)), Image.new("L", (1, 1), 7)])

    assert answers == [
        {"width": 4, "height": 2, "colour": [10, 20, 30]},
        {"width": 1, "height": 1, "colour": [7, 7, 7]},
    ]


def test_the_served_function_answers() -> None:
    with tsctl.serve(FOLDER / "handler.py") as model:
        assert model.predict(FOLDER / "sample.png") == {"width": 32, "height": 32, "colour": [255, 128, 0]}
