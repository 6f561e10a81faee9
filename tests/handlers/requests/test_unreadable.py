"""Rows that cannot be read get 400, and the rest of their batch runs."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision.transforms.functional import to_tensor

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.loader import EntryPoint


class Brightness(VisionHandler):
    """Answers with each row's id, number and mean; counts what the model was given."""

    image_processing = staticmethod(to_tensor)

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[int] = []
        self.model = self.forward

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.batches.append(len(images))
        return images.mean(dim=(1, 2, 3))

    def postprocess(self, data: torch.Tensor) -> list[Any]:
        assert self.context is not None
        self.context.set_response_header(len(data) - 1, "X-Last", "1")
        return [f"{self.context.get_request_id(idx)} {mean:.0f}" for idx, mean in enumerate(data.tolist())]


class Doubling(BaseHandler):
    def __init__(self) -> None:
        super().__init__()
        self.model = lambda numbers: numbers * 2


def png(colour: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (2, 2), colour).save(buffer, "PNG")
    return buffer.getvalue()


def run(handler: BaseHandler, rows: list[wire.Row]) -> list[wire.Answer]:
    return Runtime(EntryPoint(handler, handler.handle), context_of(Path("/"))).run(rows)


WHITE, BLACK = png(255), png(0)


def test_among_images_those_that_are_none_are_left_out_and_the_rest_renumbered() -> None:
    handler = Brightness()
    bodies = [b"no image", BLACK, WHITE[:40], WHITE, b""]

    answers = run(handler, [row(body, request_id=f"r{index}") for index, body in enumerate(bodies)])

    assert [answer.status for answer in answers] == [400, 200, 400, 200, 400]
    assert [answers[index].body for index in (1, 3)] == [b"r1 0", b"r3 1"]
    assert [answer.headers for answer in answers] == [[], [], [], [("X-Last", "1")], []]
    assert handler.batches == [2]


def test_an_unreadable_row_is_told_why_and_which() -> None:
    (answer,) = run(Brightness(), [row(b"no image", request_id="r7")])

    assert answer.error == "BadRequestException"
    assert answer.body.startswith(b"The request's 8 bytes are not an image: cannot identify image file")
    assert answer.body.endswith(b"(Request r7)")


@pytest.mark.parametrize(("brand", "kind"), [(b"heic", "HEIC"), (b"mif1", "HEIC"), (b"avis", "AVIF")])
def test_a_picture_of_a_format_that_pillow_lacks_is_told_by_the_formats_name(brand: bytes, kind: str) -> None:
    (answer,) = run(Brightness(), [row(b"\0\0\0\x18ftyp" + brand + bytes(100))])

    assert answer.body.startswith(f"The request is an image of the format {kind}, which is not read here".encode())
    assert b"send JPEG or PNG" in answer.body


def test_a_batch_without_a_readable_row_never_reaches_the_model() -> None:
    handler = Brightness()

    answers = run(handler, [row(b"x"), row(b"y")])

    assert [answer.status for answer in answers] == [400, 400]
    assert handler.batches == []


def test_each_image_is_decoded_once() -> None:
    decoded: list[Any] = []

    class Counting(Brightness):
        def decode_row(self, row: Any) -> torch.Tensor:
            decoded.append(row)
            return super().decode_row(row)

    run(Counting(), [row(WHITE), row(b"x"), row(BLACK)])

    assert len(decoded) == 3


def test_a_subclass_that_reads_rows_itself_is_left_alone() -> None:
    class Reading(Brightness):
        def preprocess(self, data: list[Any]) -> torch.Tensor:
            return torch.zeros(len(data), 1, 1, 1)

    answers = run(Reading(), [row(b"not for Pillow"), row(WHITE)])

    assert [answer.status for answer in answers] == [200, 200]


def test_a_fault_in_the_handlers_own_transform_is_no_unreadable_payload(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(Brightness):
        @staticmethod
        def image_processing(image: Image.Image) -> torch.Tensor:
            raise KeyError("gamma")

    answers = run(Broken(), [row(WHITE)])

    assert answers[0].status == 503
    assert b"Prediction failed: KeyError: 'gamma'" in answers[0].body
    assert "KeyError: 'gamma'" in capsys.readouterr().err


def test_among_arrays_those_that_are_none_are_left_out() -> None:
    bodies = [b"[1, 2]", b'{"no": "array"}', b"[[1], [2, 3]]", b'["a"]', b"[3, 4]"]

    answers = run(Doubling(), [row(body, "application/json") for body in bodies])

    assert [answer.status for answer in answers] == [200, 400, 400, 400, 200]
    assert [answers[index].body.split() for index in (0, 4)] == [[b"[", b"2,", b"4", b"]"], [b"[", b"6,", b"8", b"]"]]
    assert answers[1].body.startswith(b"The request is not an array of numbers: ")


class Unwrapping(Brightness):
    """Changes the rows first, as users' handlers do, and then leaves them to the base class."""

    def preprocess(self, data: list[Any]) -> torch.Tensor:
        return super().preprocess([{"data": each["body"][3:]} for each in data])


def test_a_users_preprocess_that_calls_ours_fails_only_for_the_rows_that_are_no_images() -> None:
    handler = Unwrapping()
    bodies = [b"..." + BLACK, b"...none", b"..." + WHITE, b""]

    answers = run(handler, [row(body, request_id=f"r{index}") for index, body in enumerate(bodies)])

    assert [answer.status for answer in answers] == [200, 400, 200, 400]
    assert [answers[index].body for index in (0, 2)] == [b"r0 0", b"r2 1"]
    assert handler.batches == [2]
