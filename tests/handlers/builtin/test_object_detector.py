"""From images to boxes, with models that answer as torchvision's do."""

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.handlers.device import DEVICE, on_device
from tests.handlers.images import encoded
from tests.handlers.samples import context_of
from tsctl.handlers.builtin.object_detector import ObjectDetector
from tsctl.handlers.sdk.errors import InvalidResult


class Corners:
    """Detects in each image a box of its size (sure), and one of half of it (not so sure)."""

    def __init__(self) -> None:
        self.given: list[Any] = []

    def __call__(self, images: Any) -> list[dict[str, torch.Tensor]]:
        self.given.append(images)
        return [self.detect(image.shape[1], image.shape[2]) for image in images]

    @staticmethod
    def detect(height: int, width: int) -> dict[str, torch.Tensor]:
        return {
            "boxes": torch.tensor([[0.0, 0.0, width, height], [0.0, 0.0, width / 2, height / 2]], device=DEVICE),
            "labels": torch.tensor([1, 2], device=DEVICE),
            "scores": torch.tensor([0.5, 0.25], device=DEVICE),
        }


@pytest.fixture
def model() -> Corners:
    return Corners()


@pytest.fixture
def detector(model: Corners) -> ObjectDetector:
    detector = on_device(ObjectDetector())
    detector.model = model
    detector.mapping = {"1": "cat", "2": "dog"}
    return detector


def png(width: int, height: int, mode: str = "RGB") -> bytes:
    return encoded(Image.new(mode, (width, height)))


def detect(detector: ObjectDetector, *bodies: bytes) -> list[Any]:
    return detector.handle([{"data": body} for body in bodies], context_of(Path("/")))


CAT, DOG = {"cat": [0, 0, 4, 6], "score": 0.5}, {"dog": [0, 0, 2, 3], "score": 0.25}


@pytest.mark.parametrize(("threshold", "answer"), [(None, [CAT]), (0.2, [CAT, DOG]), (0.9, [])])
def test_the_answer_is_a_box_and_a_score_for_each_detection_that_is_sure_enough(
    detector: ObjectDetector, model: Corners, threshold: float | None, answer: list[object]
) -> None:
    if threshold is not None:
        detector.threshold = threshold

    assert detect(detector, png(4, 6), png(4, 6)) == [answer, answer]
    assert model.given[0].shape == (2, 3, 6, 4), "images of one size are one tensor"


def test_images_of_several_sizes_are_one_batch_too(detector: ObjectDetector, model: Corners) -> None:
    answers = detect(detector, png(4, 6), png(8, 2), png(1, 1))

    assert answers == [[{"cat": box, "score": 0.5}] for box in ([0, 0, 4, 6], [0, 0, 8, 2], [0, 0, 1, 1])]
    assert [image.shape for image in model.given[0]] == [(3, 6, 4), (3, 2, 8), (3, 1, 1)]


def test_the_output_of_a_scripted_model_has_losses_before_the_detections(detector: ObjectDetector) -> None:
    detector.model = lambda images: ({}, [Corners.detect(6, 4)])

    assert detect(detector, png(4, 6)) == [[{"cat": [0, 0, 4, 6], "score": 0.5}]]


@pytest.mark.parametrize("mode", ["RGB", "L", "P"])
def test_bytes_become_the_pixels_that_they_are_otherwise(mode: str, detector: ObjectDetector, model: Corners) -> None:
    noise = encoded(Image.effect_noise((6, 4), 90).convert(mode))
    detect(detector, noise)

    detector.read_image = detector.read_bytes  # as on a GPU
    detect(detector, noise)

    assert torch.equal(model.given[0], model.given[1])


def test_a_handlers_own_processing_is_used_where_bytes_are_read(detector: ObjectDetector, model: Corners) -> None:
    detector.image_processing = lambda image: torch.zeros(3, 2, 2)
    detector.read_image = detector.read_bytes

    detect(detector, png(6, 4))

    assert model.given[0].shape == (1, 3, 2, 2)


@pytest.mark.parametrize(
    "output", [[{"boxes": torch.zeros(1, 4)}], torch.zeros(1, 6), {"boxes": torch.zeros(1, 4)}, [torch.zeros(6)]]
)
def test_a_model_that_returns_no_detections_is_told_what_its_handler_expects(
    output: Any, detector: ObjectDetector
) -> None:
    detector.model = lambda images: output

    with pytest.raises(InvalidResult, match=r"^The model returns \w+; .* of `boxes`, `labels` and `scores`$"):
        detect(detector, png(4, 6))
