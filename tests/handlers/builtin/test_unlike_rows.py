"""Rows of which one is not as the others, in shape or class: it fails alone, and no other runs twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.handlers.device import on_device
from tests.handlers.images import encoded
from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.object_detector import ObjectDetector
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import PredictionException
from tsctl.handlers.sdk.loader import EntryPoint

IMAGE = encoded(Image.new("RGB", (6, 4), "red"))
TAKES = "send an image, or an array of shape"


def detect(images: torch.Tensor | list[torch.Tensor]) -> Any:
    """Find one object that fills the image."""
    return [
        {
            "boxes": torch.tensor([[0.0, 0.0, image.shape[2], image.shape[1]]]),
            "labels": torch.tensor([0]),
            "scores": image.amax()[None],
        }
        for image in images
    ]


def run(handler: BaseHandler, model: Callable[..., Any], *bodies: Any) -> tuple[list[wire.Answer], list[int]]:
    """Answer a batch; return the rows of each call of the model, too."""
    calls = []

    def counted(images: Any) -> Any:
        calls.append(len(images))
        return model(images)

    handler.model = counted
    on_device(handler)
    runtime = Runtime(EntryPoint(handler, handler.handle), context_of(Path("/")))
    rows = [
        row(body) if isinstance(body, bytes) else row(json.dumps(body).encode(), "application/json") for body in bodies
    ]
    answers = runtime.run(rows)

    assert runtime.isolation is None
    return answers, calls

    return context_of(Path("/"))


def classify(images: torch.Tensor) -> torch.Tensor:
    """Return logits; raise for all but three channels."""
    return images.reshape(len(images), 3, 224 * 224).mean(2)


def number_of(images: torch.Tensor) -> torch.Tensor:
    """Return which of red, green and blue there is most of, for each image."""
    return images.mean((2, 3)).argmax(1)


@pytest.mark.parametrize(
    ("handler", "model", "shape"),
    [(ImageClassifier, classify, "[3, 224, 224]"), (ObjectDetector, detect, "[3, any, any]")],
)
def test_an_array_that_is_no_image_is_400_with_both_shapes_and_the_images_beside_it_are_answered(
    handler: type[VisionHandler], model: Callable[..., Any], shape: str
) -> None:
    answers, calls = run(handler(), model, IMAGE, [[1, 2], [3, 4]], IMAGE, [])
    [alone], _ = run(handler(), model, IMAGE)

    assert [answer.status for answer in answers] == [200, 400, 200, 400]
    assert f"The request's array has the shape [2, 2], for which the model fails: {TAKES} {shape}" in str(
        answers[1].body
    )
    assert answers[0].body == answers[2].body == alone.body
    assert calls[0] == 2


def test_a_users_own_method_called_prepare_is_none_of_ours() -> None:
    class Own(ImageClassifier):
        def prepare(self) -> None:  # type: ignore[override]
            raise AssertionError("no method of TorchServe's")

    answers, calls = run(Own(), classify, IMAGE, IMAGE)

    assert [answer.status for answer in answers] == [200, 200]
    assert calls == [2]


def test_an_array_of_an_unusual_shape_that_the_model_takes_is_answered_beside_an_image() -> None:
    answers, calls = run(ImageClassifier(), lambda images: images.mean((2, 3)), IMAGE, [[[1.0]], [[0.0]], [[0.0]]])

    assert [answer.status for answer in answers] == [200, 200]
    assert calls == [1, 1]


def test_an_explanation_of_an_array_that_is_no_image_is_400() -> None:
    class Explained(ImageClassifier):
        def get_insights(self, tensor_data: torch.Tensor, raw_data: Any, target: Any = 0) -> list[Any]:
            return [self.model(tensor_data).tolist()]

    handler = Explained()
    handler.model = classify
    on_device(handler)
    rows = [
        row(json.dumps(body).encode(), "application/json") for body in ([[1, 2]], torch.zeros(3, 224, 224).tolist())
    ]
    asked = [wire.Row(each.id, [("explain", "True")], each.params) for each in rows]

    answers = Runtime(EntryPoint(handler, handler.handle), context_of(Path("/"))).run(asked)

    assert [answer.status for answer in answers] == [400, 200]


def test_a_model_that_fails_for_its_own_shape_has_failed() -> None:
    [answer], _ = run(ImageClassifier(), lambda images: 1 / 0, torch.zeros(3, 224, 224).tolist())

    assert answer.status == 503


def test_arrays_of_numbers_of_several_shapes_fail_alone() -> None:
    answers, calls = run(
        BaseHandler(), lambda rows: rows.reshape(len(rows), 2) * 2, [1, 2], [1.0, 2, 3], [0.5, 2], b"[3, 4]"
    )

    assert [answer.status for answer in answers] == [200, 503, 200, 200]
    assert [json.loads(answers[index].body) for index in (0, 2, 3)] == [[2, 4], [1, 4], [6, 8]]
    assert calls == [3, 1]


@pytest.mark.parametrize("body", [b"", b"abcd", b"\x93NUMPY\x01", b"[" * 100_000])
def test_a_file_that_is_not_json_is_no_array_of_numbers(body: bytes) -> None:
    [answer], calls = run(BaseHandler(), lambda rows: rows, body)

    assert answer.status == 400
    assert calls == []


def test_an_image_for_which_a_handlers_own_transforms_fail_fails_alone_and_with_its_own_error() -> None:
    class OfColours(VisionHandler):
        def image_processing(self, image: Image.Image) -> torch.Tensor:
            if image.mode == "1":
                raise PredictionException("two colours", 507)
            return torch.tensor([float(each) for each in image.getpixel((0, 0))])  # type: ignore[union-attr]

    grey, two = encoded(Image.new("L", (6, 4))), encoded(Image.new("1", (6, 4)))
    answers, calls = run(OfColours(), lambda rows: rows, IMAGE, grey, IMAGE, two, grey)

    assert [answer.status for answer in answers] == [200, 503, 200, 507, 503]
    assert calls == [2]


@pytest.mark.parametrize(
    ("handler", "model"),
    [
        (ImageClassifier, lambda images: torch.nn.functional.one_hot(number_of(images), 3) * 99.0),
        (
            ObjectDetector,
            lambda images: [{**found, "labels": number_of(images[[at]])} for at, found in enumerate(detect(images))],
        ),
    ],
)
def test_an_image_whose_class_has_no_name_fails_alone(handler: type[VisionHandler], model: Callable[..., Any]) -> None:
    named = handler()
    named.mapping = {"0": "red", "1": "green"}
    if isinstance(named, ImageClassifier):
        named.topk = 1

    answers, calls = run(named, model, IMAGE, encoded(Image.new("RGB", (6, 4), "blue")), IMAGE)

    assert [answer.status for answer in answers] == [200, 503, 200]
    assert b"class 2 has no name: 2 classes are named" in answers[1].body
    assert calls == [3]


def test_a_handler_without_transforms_takes_arrays_and_says_so_for_an_image() -> None:
    answers, _ = run(VisionHandler(), lambda rows: rows.sum(1), [1, 2], IMAGE)

    assert [answer.status for answer in answers] == [200, 400]
    assert "VisionHandler, has no `image_processing`" in str(answers[1].body)
