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
from tsctl.handlers.builtin.support import pixels
from tsctl.handlers.builtin.vision import example_image
from tsctl.handlers.optimize.checks.drift import TOLERANCES
from tsctl.handlers.requests.images import decode_image, is_decoded_smaller
from tsctl.handlers.requests.preparation import IMAGENET, Preparation
from tsctl.handlers.sdk.errors import UnreadablePayload

LEAST_SIDE = IMAGENET.least_side or 0


@cache
def enlarged(width: int, height: int) -> Image.Image:
    return Image.open(io.BytesIO(example_image())).resize((width, height), Image.Resampling.BICUBIC)


def photo(width: int, height: int, image_format: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    return encoded(enlarged(width, height).convert(mode), image_format, **options)


@pytest.mark.parametrize(
    ("width", "height", "decoded"),
    [
        (1279, 1279, (1279, 1279)),
        (1280, 1280, (640, 640)),
        (1600, 1300, (800, 650)),
        (2001, 3001, (1001, 1501)),
        (3001, 2560, (751, 640)),
        (5201, 5121, (1301, 1281)),
        (4100, 1200, (4100, 1200)),
    ],
)
def test_the_shorter_side_keeps_two_and_a_half_times_the_pixels_that_are_needed(
    width: int, height: int, decoded: tuple[int, int]
) -> None:
    image = decode_image(photo(width, height), least_side=LEAST_SIDE)

    assert image.size == decoded


def drift_of(body: bytes, how: Preparation, fast: bool) -> float:
    """Return how far apart a JPEG's pixels are, read whole and at a part of its size."""
    handler = ImageClassifier()
    handler.preparation, handler.image_processing = how, pixels.usual(how)
    if fast:
        fast_images.use(handler)
    usual = handler.decode_row({"body": body})
    assert scaled_decode.use(handler)
    return fast_images.pixel_drift(usual, handler.decode_row({"body": body}), how)


def test_a_very_long_image_is_decoded_whole_and_cut_to_its_middle() -> None:
    assert is_decoded_smaller((16 * 1280, 1280), LEAST_SIDE)
    assert not is_decoded_smaller((16 * 1280 + 1, 1280), LEAST_SIDE)


ROUNDED = 3.001 / 255  # resizing the rounded sides whole moves these images by 4/255 to 9/255, photographs by 19 to 45


@pytest.mark.parametrize("fast", [False, True], ids=["usual", "fast"])
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(
    ("width", "height"),
    [(1600, 1536), (3001, 2003), (1539, 1543), pytest.param(1544, 1537, id="257 pixels wide would become 256")],
)
def test_all_sides_are_resized_by_the_factor_of_the_whole_image(
    width: int, height: int, interpolation: str, fast: bool
) -> None:
    how = IMAGENET._replace(interpolation=interpolation)

    assert 0 < drift_of(photo(width, height, quality=90), how, fast) <= ROUNDED


@pytest.mark.parametrize("fast", [False, True], ids=["usual", "fast"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_and_wherever_turning_brings_the_edge_that_was_rounded(orientation: int, fast: bool) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation

    assert drift_of(photo(1603, 1537, quality=90, exif=exif), IMAGENET, fast) <= ROUNDED


@pytest.mark.parametrize("fast", [False, True], ids=["usual", "fast"])
def test_the_made_up_image_passes_as_clip_resizes(fast: bool) -> None:
    clip = Preparation(resize=224, crop=(224, 224), interpolation="bicubic", half_down=True)

    assert drift_of(scaled_decode.enlarge(example_image(), clip), clip, fast) <= ROUNDED


@pytest.mark.parametrize(
    ("how", "decoded"),
    [
        (Preparation(resize=120, crop=(120, 120)), (400, 300)),
        (Preparation(resize=320, crop=(300, 300), interpolation="bicubic"), (1600, 1200)),
        (Preparation(resize=(128, 200), crop=(128, 200), interpolation="bicubic"), (800, 600)),
        (Preparation(resize=(200, 200), crop=(200, 200), interpolation="lanczos"), (800, 600)),
    ],
)
@pytest.mark.parametrize("fast", [False, True], ids=["usual", "fast"])
def test_as_many_pixels_are_kept_as_the_archives_resize_and_filter_need(
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
        ("JPEG", {"mode": "L"}, "L", (1300, 650)),
        ("JPEG", {"mode": "CMYK"}, "CMYK", (1300, 650)),
        ("JPEG", {"progressive": True}, "RGB", (1300, 650)),
        pytest.param("JPEG", {"exif": LYING}, "RGB", (650, 1300), id="what lies on its side is turned upright"),
        pytest.param("PNG", {}, "RGB", (2600, 1300), id="other formats are decoded whole"),
        ("WEBP", {}, "RGB", (2600, 1300)),
    ],
)
def test_other_images(kind: str, options: dict[str, Any], mode: str, size: tuple[int, int]) -> None:
    image = decode_image(photo(2600, 1300, kind, **options), least_side=LEAST_SIDE)

    assert (image.mode, image.size) == (mode, size)
    with pytest.raises(UnreadablePayload):  # damaged
        decode_image(photo(2600, 1300)[:2000], least_side=LEAST_SIDE)


def test_a_handler_with_transforms_of_its_own_keeps_all_pixels() -> None:
    class Mine(ImageClassifier):
        def image_processing(self, image: Image.Image) -> Any:
            return torch.tensor(image.size)

    handler = Mine()

    assert not scaled_decode.use(handler)
    assert handler.decode_row({"body": photo(2600, 1300)}).tolist() == [2600, 1300]


def test_the_usual_way_comes_back() -> None:
    handler = ImageClassifier()
    usual = handler.decode_row({"body": photo(2600, 1300)})
    scaled_decode.use(handler)

    scaled_decode.stop_using(handler)

    assert torch.equal(handler.decode_row({"body": photo(2600, 1300)}), usual)


def test_a_small_sample_is_enlarged_until_there_is_something_to_do() -> None:
    large = scaled_decode.enlarge(example_image())

    assert min(decode_image(large).size) == 5 * 256
    assert decode_image(large, least_side=LEAST_SIDE).size != decode_image(large).size
    assert decode_image(scaled_decode.enlarge(photo(1400, 1300, "PNG"))).size == (1400, 1300), "a large one stays"
