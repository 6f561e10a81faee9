"""From images to a class for each pixel, with models that answer as torchvision's do."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.handlers.device import on_device
from tests.handlers.images import encoded
from tests.handlers.samples import context_of
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.image_segmenter import ImageSegmenter


def segment(images: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return class 1 where an image is bright, 0 where dark; at a tenth of the size, for speed."""
    small = images[:, :1, ::56, ::56]
    return {"out": torch.cat([-small, small], dim=1), "aux": small}


@pytest.fixture
def segmenter() -> ImageSegmenter:
    segmenter = on_device(ImageSegmenter())
    segmenter.model = segment
    return segmenter


def png(colour: str, mode: str = "RGB") -> bytes:
    return encoded(Image.new("RGB", (8, 8), colour).convert(mode))


def test_each_pixel_has_its_class_and_its_probability(segmenter: ImageSegmenter) -> None:
    context = context_of(Path("/"))

    answers = torch.tensor(segmenter.handle([{"data": png("white")}, {"data": png("black")}], context))

    assert answers.shape == (2, 4, 4, 2)
    assert answers[0, :, :, 0].unique().tolist() == [1.0]
    assert answers[1, :, :, 0].unique().tolist() == [0.0]
    white = (1 - 0.485) / 0.229
    assert answers[0, 0, 0, 1].item() == pytest.approx(1 / (1 + torch.exp(torch.tensor(-2 * white)).item()), abs=1e-5)


def test_images_are_cropped_and_normalised_as_for_the_classifier() -> None:
    assert ImageSegmenter.image_processing is ImageClassifier.image_processing
