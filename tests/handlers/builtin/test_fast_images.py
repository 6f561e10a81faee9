"""The fast way prepares an image as the usual way does, to one step of 255."""

import io
from typing import Any

import pytest
import torch
from PIL import Image

from tsctl.handlers.builtin import fast_images
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.support.example_image import example_image


def encoded(image: Image.Image, image_format: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, image_format)
    return buffer.getvalue()


def picture(width: int, height: int, mode: str = "RGB") -> Image.Image:
    return Image.open(io.BytesIO(example_image())).resize((width, height)).convert(mode)


def both(body: bytes) -> tuple[torch.Tensor, torch.Tensor]:
    handler = ImageClassifier()
    usual = handler.decode_row({"body": body})
    assert fast_images.use(handler)
    return usual, handler.decode_row({"body": body})


@pytest.mark.parametrize(
    ("width", "height"),
    [(500, 375), (375, 500), (256, 256), (257, 256), (224, 224), (100, 60), (33, 1024), (2000, 1), (1, 1), (1001, 667)],
)
def test_each_value_is_the_same_to_one_step_of_255(width: int, height: int) -> None:
    usual, fast = both(encoded(picture(width, height)))

    assert usual.shape == fast.shape == (3, 224, 224)
    assert fast_images.pixel_drift(usual, fast) <= 1.001 / 255
    assert (usual - fast).abs().mean() < 1e-3


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA", "I;16", "CMYK"])
def test_other_modes_take_the_usual_way(mode: str) -> None:
    image_format = "JPEG" if mode == "CMYK" else "PNG"
    usual, fast = both(encoded(picture(300, 200, mode), image_format))

    assert torch.equal(usual, fast)


def test_numbers_are_taken_as_they_are() -> None:
    handler = ImageClassifier()
    fast_images.use(handler)

    assert handler.decode_row({"body": [[[0.5]]]}).tolist() == [[[0.5]]]


def test_a_handler_with_transforms_of_its_own_keeps_them() -> None:
    class Mine(ImageClassifier):
        def image_processing(self, image: Image.Image) -> Any:
            return torch.ones(1)

    handler = Mine()

    assert not fast_images.use(handler)
    assert handler.decode_row({"body": example_image()}).tolist() == [1.0]


def test_the_usual_way_comes_back() -> None:
    handler = ImageClassifier()
    fast_images.use(handler)
    fast_images.stop_using(handler)

    assert handler.image_processing is ImageClassifier.image_processing


def test_the_example_is_the_same_each_time_and_no_plain_colour() -> None:
    image = Image.open(io.BytesIO(example_image()))

    assert example_image() == example_image()
    assert (image.size, image.mode) == ((500, 375), "RGB")
    assert min(high - low for low, high in image.getextrema()) > 128  # type: ignore[misc]
