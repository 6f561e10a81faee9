"""The images of a batch: no more pixels at a time than one image may have, and every row answered."""

import io
from typing import Any

import pytest
from PIL import Image

from tests.handlers.typed.calls import request, runtime_of

MOST = 100


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", MOST)


def image(pixels: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (pixels, 1)).save(buffer, "PNG")
    return buffer.getvalue()


def answers(function: Any, *bodies: bytes) -> list[tuple[int, str]]:
    rows = [request(("body", "", body), number=number) for number, body in enumerate(bodies)]
    return [(each.status, each.body.decode()) for each in runtime_of(function).run(rows)]


def test_rows_that_do_not_fit_together_are_run_in_turns() -> None:
    calls: list[list[int]] = []

    def predict(images: list[Image.Image]) -> list[str]:
        calls.append([each.width for each in images])
        return [str(each.width) for each in images]

    found = answers(predict, image(60), image(61), image(30), image(100), image(10), b"no image", image(39))

    assert [body for status, body in found if status == 200] == ["60", "61", "30", "100", "10", "39"]
    assert found[5][0] == 400
    assert calls == [[60, 30, 10], [61, 39], [100]]
    assert all(sum(call) <= MOST for call in calls)


def test_a_batch_that_fits_is_one_call() -> None:
    calls = []

    def predict(images: list[Image.Image]) -> list[str]:
        calls.append(len(images))
        return ["" for _ in images]

    answers(predict, image(50), image(50))

    assert calls == [2]


def test_without_the_limit_all_rows_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    calls = []

    def predict(images: list[Image.Image]) -> list[str]:
        calls.append(len(images))
        return ["" for _ in images]

    answers(predict, image(90), image(90))

    assert calls == [2]


def test_functions_of_one_row_answer_all_of_them() -> None:
    def predict(picture: Image.Image) -> str:
        return str(picture.width)

    found = answers(predict, image(90), image(101), image(91))

    assert [status for status, _ in found] == [200, 400, 200]
    assert (found[0][1], found[2][1]) == ("90", "91")


def test_a_row_of_two_images_is_read_alone() -> None:
    def predict(first: Image.Image, second: Image.Image) -> str:
        return str(first.width + second.width)

    rows = [request(("first", "", image(80)), ("second", "", image(70)), number=number) for number in range(2)]

    assert [each.body for each in runtime_of(predict).run(rows)] == [b"150", b"150"]


def test_a_handler_that_raises_fails_as_for_one_call() -> None:
    def predict(images: list[Image.Image]) -> list[str]:
        raise ValueError("no")

    assert [status for status, _ in answers(predict, image(60), image(60))] == [503, 503]
