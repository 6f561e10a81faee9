"""A JPEG that is much larger than needed is decoded at a part of its size, and is nearly the same at 256 pixels."""

import io
from functools import cache
from typing import Any

import pytest
import torch
from PIL import Image

from tests.handlers.images import encoded
from tsctl.handlers.builtin import fast_images, scaled_decode
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.scaled_decode import least_side
from tsctl.handlers.builtin.support import pixels
from tsctl.handlers.builtin.vision import example_image
from tsctl.handlers.optimize.checks.drift import TOLERANCES
from tsctl.handlers.requests.images import decode_image
from tsctl.handlers.requests.preparation import IMAGENET, Preparation
from tsctl.handlers.sdk.errors import UnreadablePayload

LEAST_SIDE = least_side(IMAGENET)


@cache
def enlarged(width: int, height: int) -> Image.Image:
    return Image.open(io.BytesIO(example_image())).resize((width, height), Image.Resampling.BICUBIC)


def photo(width: int, height: int, image_format: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    return encoded(enlarged(width, height).convert(mode), image_format, **options)


@pytest.mark.parametrize(
    ("width", "height", "decoded"),
    [
        (1023, 1023, (1023, 1023)),
        (1024, 1024, (512, 512)),
        (1600, 1200, (800, 600)),
        (2000, 3000, (667, 1000)),
        (2500, 2048, (625, 512)),
        (4200, 4100, (525, 513)),
        (4100, 1000, (4100, 1000)),
    ],
)
def test_the_shorter_side_keeps_twice_the_pixels_that_are_needed(
    width: int, height: int, decoded: tuple[int, int]
) -> None:
    image = decode_image(photo(width, height), least_side=LEAST_SIDE)

    ratio = width // decoded[0]
    assert image.size == (-(-width // ratio), -(-height // ratio))
    assert min(image.size) >= min(LEAST_SIDE, width, height)


@pytest.mark.parametrize("fast", [False, True], ids=["usual", "fast"])
@pytest.mark.parametrize(("width", "height"), [(1600, 1200), (2500, 2048), (1501, 2207), (1025, 1031)])
def test_each_value_is_nearly_the_same(width: int, height: int, fast: bool) -> None:
    body = photo(width, height, quality=90)
    handler = ImageClassifier()
    if fast:
        fast_images.use(handler)
    usual = handler.decode_row({"body": body})

    assert scaled_decode.use(handler)
    scaled = handler.decode_row({"body": body})

    assert not torch.equal(usual, scaled)
    assert fast_images.pixel_drift(usual, scaled) <= TOLERANCES["scaled_decode"]


@pytest.mark.parametrize(
    ("how", "decoded"),
    [
        (Preparation(resize=128, crop=(128, 128)), (400, 300)),
        (Preparation(resize=320, crop=(300, 300), interpolation="bicubic"), (1600, 1200)),
        (Preparation(resize=(128, 260), crop=(128, 260), interpolation="bicubic"), (800, 600)),
        (Preparation(resize=(224, 224), crop=(224, 224), interpolation="lanczos"), (800, 600)),
    ],
)
@pytest.mark.parametrize("fast", [False, True], ids=["usual", "fast"])
def test_twice_the_pixels_are_kept_that_the_archive_resizes_to(
    how: Preparation, decoded: tuple[int, int], fast: bool
) -> None:
    body, handler = photo(1600, 1200, quality=90), ImageClassifier()
    handler.preparation, handler.image_processing = how, pixels.usual(how)
    if fast:
        fast_images.use(handler)
    usual = handler.decode_row({"body": body})

    assert scaled_decode.use(handler)
    scaled = handler.decode_row({"body": body})

    assert handler.least_side is not None
    assert decode_image(body, least_side=handler.least_side).size == decoded
    assert usual.shape == scaled.shape == (3, *how.crop)
    assert fast_images.pixel_drift(usual, scaled, how) <= TOLERANCES["scaled_decode"]


LYING = Image.Exif()
LYING[0x0112] = 6


@pytest.mark.parametrize(
    ("kind", "options", "mode", "size"),
    [
        ("JPEG", {"mode": "L"}, "L", (1024, 512)),
        ("JPEG", {"mode": "CMYK"}, "CMYK", (1024, 512)),
        ("JPEG", {"progressive": True}, "RGB", (1024, 512)),
        pytest.param("JPEG", {"exif": LYING}, "RGB", (512, 1024), id="what lies on its side is turned upright"),
        pytest.param("PNG", {}, "RGB", (2048, 1024), id="other formats are decoded whole"),
        ("WEBP", {}, "RGB", (2048, 1024)),
    ],
)
def test_other_images(kind: str, options: dict[str, Any], mode: str, size: tuple[int, int]) -> None:
    image = decode_image(photo(2048, 1024, kind, **options), least_side=LEAST_SIDE)

    assert (image.mode, image.size) == (mode, size)
    with pytest.raises(UnreadablePayload):  # damaged
        decode_image(photo(2048, 1024)[:2000], least_side=LEAST_SIDE)


def test_a_handler_with_transforms_of_its_own_keeps_all_pixels() -> None:
    class Mine(ImageClassifier):
        def image_processing(self, image: Image.Image) -> Any:
            return torch.tensor(image.size)

    handler = Mine()

    assert not scaled_decode.use(handler)
    assert handler.decode_row({"body": photo(2048, 1024)}).tolist() == [2048, 1024]


def test_the_usual_way_comes_back() -> None:
    handler = ImageClassifier()
    usual = handler.decode_row({"body": photo(2048, 1024)})
    scaled_decode.use(handler)

    scaled_decode.stop_using(handler)

    assert torch.equal(handler.decode_row({"body": photo(2048, 1024)}), usual)


def test_a_small_sample_is_enlarged_until_there_is_something_to_do() -> None:
    large = scaled_decode.enlarge(example_image())

    assert min(decode_image(large).size) == 4 * 256
    assert decode_image(large, least_side=LEAST_SIDE).size != decode_image(large).size
    assert decode_image(scaled_decode.enlarge(photo(1200, 1100, "PNG"))).size == (1200, 1100), "a large one stays"
