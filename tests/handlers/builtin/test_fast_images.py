"""The fast way prepares an image as the usual way does, to one step of 255."""

import io
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision import transforms

from tests.handlers.images import encoded
from tsctl.handlers.builtin import fast_images
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.support import pixels
from tsctl.handlers.builtin.vision import example_image
from tsctl.handlers.requests.preparation import INTERPOLATIONS, Preparation
from tsctl.handlers.sdk.errors import UnreadablePayload


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


def test_a_handler_with_transforms_of_its_own_keeps_them() -> None:
    class Mine(ImageClassifier):
        def image_processing(self, image: Image.Image) -> Any:
            return torch.ones(1)

    handler = Mine()

    assert not fast_images.use(handler)
    assert handler.decode_row({"body": example_image()}).tolist() == [1.0]


def test_numbers_are_taken_as_they_are_and_the_usual_way_comes_back() -> None:
    other = Preparation(mean=(0.0, 0.0, 0.0))
    for handler, usual in (
        (ImageClassifier(), ImageClassifier.image_processing), (prepared_so(other), pixels.usual(other)),
    ):  # fmt: skip
        fast_images.use(handler)
        assert handler.decode_row({"body": [[[0.5]]]}).tolist() == [[[0.5]]]
        fast_images.stop_using(handler)
        assert handler.image_processing is usual


def test_the_example_is_the_same_each_time_and_no_plain_colour() -> None:
    image = Image.open(io.BytesIO(example_image()))

    assert example_image() == example_image()
    assert (image.size, image.mode) == ((500, 375), "RGB")
    assert min(high - low for low, high in image.getextrema()) > 128  # type: ignore[misc]


@pytest.mark.parametrize(("width", "height"), [(500, 375), (100, 60), (2000, 1), (1, 1), (1001, 667)])
@pytest.mark.parametrize("quality", [30, 90])
def test_a_jpeg_that_torchvision_decodes_has_the_pixels_of_pillow(width: int, height: int, quality: int) -> None:
    body = encoded(picture(width, height), "JPEG", quality=quality)
    handler = ImageClassifier()
    fast_images.use(handler)
    by_torchvision = handler.decode_row({"body": body})

    handler.read_image = None  # Pillow decodes

    assert torch.equal(by_torchvision, handler.decode_row({"body": body}))


def test_pillow_is_not_asked_for_the_pixels_of_a_plain_jpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = ImageClassifier()
    fast_images.use(handler)
    monkeypatch.setattr(fast_images, "decode_image", lambda *_, **__: pytest.fail("Pillow was asked"))

    assert handler.decode_row({"body": encoded(picture(300, 200), "JPEG")}).shape == (3, 224, 224)


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_a_jpeg_is_turned_upright(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    usual, fast = both(encoded(picture(300, 200), "JPEG", exif=exif))

    assert fast_images.pixel_drift(usual, fast) <= 1.001 / 255


def test_a_jpeg_that_is_cut_off_is_refused_as_pillow_refuses_it() -> None:
    cut = encoded(picture(300, 200), "JPEG")[:2000]
    handler = ImageClassifier()
    with pytest.raises(UnreadablePayload) as usual:
        handler.decode_row({"body": cut})
    fast_images.use(handler)

    with pytest.raises(UnreadablePayload) as fast:
        handler.decode_row({"body": cut})

    assert str(fast.value) == str(usual.value)


def test_a_jpeg_that_torchvision_cannot_decode_is_admitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> torch.Tensor:
        raise RuntimeError("not this one")

    body = encoded(picture(300, 200), "JPEG")
    monkeypatch.setattr(pixels, "decode_jpeg", refuse)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100_000)  # twice the 60 000 would wait for itself
    usual, fast = both(body)

    assert fast_images.pixel_drift(usual, fast) <= 1.001 / 255


def prepared_so(how: Preparation) -> ImageClassifier:
    handler = ImageClassifier()
    handler.preparation, handler.image_processing = how, pixels.usual(how)
    return handler


def transformers_crop(image: Image.Image, height: int, width: int) -> Image.Image:
    """Crop as `center_crop` in transformers' image_transforms.py."""
    top, left = (image.height - height) // 2, (image.width - width) // 2
    return image.crop((left, top, left + width, top + height))


def torchvisions(how: Preparation) -> Any:
    return transforms.Compose([
        transforms.Resize(how.resize, transforms.InterpolationMode(how.interpolation)),
        (lambda image: transformers_crop(image, *how.crop)) if how.half_down else transforms.CenterCrop(how.crop),
        transforms.ToTensor(), transforms.Normalize(how.mean, how.std),
    ])  # fmt: skip


SIDES = st.integers(1, 90)
COLOURS = st.tuples(*[st.integers(0, 1000).map(lambda value: value / 1000)] * 3)
SPREADS = st.tuples(*[st.integers(10, 1000).map(lambda value: value / 1000)] * 3)


@st.composite
def preparations(draw: st.DrawFn) -> Preparation:
    resize = draw(st.one_of(SIDES, st.tuples(SIDES, SIDES)))
    most = resize if isinstance(resize, tuple) else (resize, resize)
    crop = (draw(st.integers(1, most[0])), draw(st.integers(1, most[1])))
    filters = st.sampled_from(INTERPOLATIONS)
    return Preparation(draw(COLOURS), draw(SPREADS), resize, crop, draw(filters), draw(st.booleans()))


@settings(max_examples=100, deadline=None)
@given(preparations(), st.integers(1, 120), st.integers(8, 120), st.sampled_from(["PNG", "JPEG"]), st.integers(0, 9))
def test_any_preparation_is_torchvisions_or_cropped_by_transformers_and_only_bilinear_is_rounded_otherwise(
    how: Preparation, width: int, height: int, image_format: str, seed: int
) -> None:
    noise = torch.randint(0, 256, (height, width, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    body = encoded(Image.fromarray(noise.numpy()), image_format)
    if isinstance(how.resize, int) and max(width, height) > 16 * min(width, height):
        return  # cut before, so that no image of a line becomes one of a gibibyte
    handler = prepared_so(how)
    expected = torchvisions(how)(Image.open(io.BytesIO(body)))

    usual = handler.decode_row({"body": body})
    assert fast_images.use(handler)
    fast = handler.decode_row({"body": body})

    assert torch.equal(usual, expected)
    least = 1.001 / 255 if how.interpolation == "bilinear" else 1e-6
    assert fast_images.pixel_drift(expected, fast, how) <= least
