"""The images of a batch: no more decoded pixels at a time than one image may have, in threads and in groups."""

import base64
import gc
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageOps

from tests.handlers.device import on_device
from tests.handlers.images import encoded
from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.object_detector import ObjectDetector
from tsctl.handlers.builtin.support import decoders
from tsctl.handlers.builtin.support.decoders import admission
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.envelopes.entry import enveloped
from tsctl.handlers.requests.images import as_rgb, decode_image
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import InvalidResult, UnreadablePayload, UnreadableRows
from tsctl.handlers.sdk.loader import EntryPoint

MOST = 100


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", MOST)
    monkeypatch.setattr(decoders, "_freed", 0)


def image(pixels: int, mode: str = "L") -> bytes:
    return encoded(Image.new(mode, (pixels, 1)))


def pixels_of_images() -> int:
    """Return the pixels of all decoded images that are alive."""
    alive = [each for each in gc.get_objects() if issubclass(type(each), Image.Image) and each._im]
    return sum(core.size[0] * core.size[1] for core in {id(each._im): each._im for each in alive}.values())


def pixels_of_tensors() -> int:
    """Return the pixels of all RGB float tensors that are alive."""
    alive = [each for each in gc.get_objects() if type(each) is torch.Tensor and each.dtype == torch.float32]
    memory = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in alive}
    return sum(memory.values()) // (3 * 4)


# Threads


@pytest.mark.parametrize(("most", "at_once"), [(100, 1), (200, 2)])
def test_large_images_wait_for_each_other(monkeypatch: pytest.MonkeyPatch, most: int, at_once: int) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    lock, now, highest = threading.Lock(), 0, 0
    handler = VisionHandler()

    def process(picture: Image.Image) -> torch.Tensor:
        nonlocal now, highest
        with lock:
            now += 1
            highest = max(highest, now)
        picture.tobytes()
        with lock:
            now -= 1
        return torch.tensor(picture.width)

    handler.image_processing = process
    with ThreadPoolExecutor(4) as threads:
        handler.spread = threads.map
        data: list[Any] = [{"body": image(90)} for _ in range(12)]

        assert handler.prepare(data) == {}

    assert [int(row.prepared) for row in data] == [90] * 12
    assert highest <= at_once


def test_an_image_is_decoded_and_made_rgb_without_a_copy_of_its_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen = pixels_of_images(), []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            seen.append(pixels_of_images() - before)
            return result

        return call

    monkeypatch.setattr(ImageOps, "exif_transpose", watched(ImageOps.exif_transpose))

    picture = decode_image(image(90, "RGB"))
    rgb = watched(as_rgb)(picture)

    assert (type(rgb), rgb.mode, rgb.size) == (Image.Image, "RGB", (90, 1))
    assert seen == [90, 90]


def test_what_malloc_keeps_of_freed_images_is_returned_before_it_would_be_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, highest = 0, 0

    trims = 0

    def trim() -> None:
        nonlocal kept, trims
        kept, trims = 0, trims + 1

    monkeypatch.setattr(decoders, "give_memory_back", trim)
    for pixels in (40, 30, 30, 90, 10, 100, 1):
        with admission() as admit:
            admit(pixels)
            highest = max(highest, kept + pixels)
        kept += pixels  # as at worst: by an arena of a thread of its own

    assert highest == MOST
    assert kept == 1
    before = trims
    for pixels in [1] * 90:
        with admission() as admit:
            admit(pixels)
    assert trims == before, "small images are decoded without"
    with admission() as admit:
        admit(150)  # alone; Pillow warns of it, and reads it


def test_an_image_that_fails_leaves_its_room() -> None:
    handler = VisionHandler()

    def process(picture: Image.Image) -> torch.Tensor:
        raise UnreadablePayload(f"{picture.width}")

    handler.image_processing = process

    assert list(handler.prepare([{"body": image(90)}, {"body": image(90)}])) == [0, 1]  # else this would wait forever


# Groups


class Groups:
    """Answers as a detection model, and notes the widths of each call's images, and how many pixels are alive."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.alive: list[int] = []
        gc.collect()  # what earlier tests have left would end at any moment
        self._before = pixels_of_tensors()

    def __call__(self, images: Any) -> list[dict[str, torch.Tensor]]:
        self.calls.append([each.shape[2] for each in images])
        self.alive.append(pixels_of_tensors() - self._before)
        found = [torch.tensor([[0.0, 0.0, width, 1.0]]) for width in self.calls[-1]]
        return [{"boxes": box, "labels": torch.tensor([1]), "scores": torch.tensor([0.75])} for box in found]


@pytest.fixture
def model() -> Groups:
    return Groups()


def detector_with(model: Any, kind: type[ObjectDetector] = ObjectDetector) -> ObjectDetector:
    handler = kind()
    handler.model = model
    return handler


def answers(handler: ObjectDetector, *bodies: bytes, own: bool = False) -> list[tuple[int, str]]:
    entry = EntryPoint(handler, handler.handle)
    entry.own_handle = own
    rows: list[wire.Row] = [row(body) for body in bodies]
    return [(each.status, each.body.decode()) for each in Runtime(entry, context_of(Path("/"))).run(rows)]


def widths(found: list[tuple[int, str]]) -> list[Any]:
    return [int(float(body.split(",")[2])) if status == 200 else status for status, body in found]


def test_rows_that_do_not_fit_together_are_detected_in_groups(model: Groups) -> None:
    found = answers(
        detector_with(model), image(60), image(61), image(30), image(100), image(10), b"no image", image(39)
    )

    assert widths(found) == [60, 61, 30, 100, 10, 400, 39]
    assert model.calls == [[60, 30, 10], [61, 39], [100]]
    assert model.alive == [100, 100, 100]


def test_images_of_one_size_are_stacked_without_being_held_twice(model: Groups) -> None:
    answers(detector_with(model), *[image(50)] * 5)

    assert model.calls == [[50, 50], [50, 50], [50]]
    assert model.alive == [100, 100, 50]


def test_an_image_whose_pixels_turn_out_to_be_damaged_fails_alone_in_a_later_group(model: Groups) -> None:
    cut = image(80)[:43]

    assert widths(answers(detector_with(model), image(90), image(91), cut, image(92))) == [90, 91, 400, 92]
    assert model.calls == [[90], [91], [92]]


def test_a_handle_of_ones_own_that_calls_ours_is_answered_in_groups_too(model: Groups) -> None:
    assert widths(answers(detector_with(model), image(90), image(91), image(9), own=True)) == [90, 91, 9]
    assert model.calls == [[90, 9], [91]]


def test_unreadable_rows_are_told_before_any_group_runs(model: Groups) -> None:
    with pytest.raises(UnreadableRows) as raised:
        detector_with(model).handle([{"data": image(90)}, {"data": b"none"}], context_of(Path("/")))

    assert list(raised.value.rows) == [1]
    assert model.calls == []


def test_a_group_with_too_few_answers_is_an_error_of_the_handler() -> None:
    handler = detector_with(lambda images: [])

    with pytest.raises(InvalidResult, match="expected 1"):
        handler.handle([{"data": image(90)}, {"data": image(90)}], context_of(Path("/")))


def test_rows_whose_tensors_are_more_than_one_image_may_have_are_run_in_turns(
    monkeypatch: pytest.MonkeyPatch, model_dir: Path
) -> None:
    calls: list[int] = []

    def classify(images: torch.Tensor) -> torch.Tensor:
        calls.append(len(images))
        return images.mean((2, 3))

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2 * 224 * 224 + 1)
    handler = on_device(ImageClassifier())
    handler.model = classify
    envelope = enveloped(EntryPoint(handler, handler.handle), "json")
    picture = base64.b64encode(image(90)).decode()
    bodies = [{"instances": [picture] * 5}, {"instances": [picture, picture, "none"]}, {"instances": [picture]}]
    rows = [row(json.dumps(body).encode(), "application/json") for body in bodies]

    answered = Runtime(envelope, context_of(model_dir)).run(rows)

    assert [answer.status for answer in answered] == [200, 400, 200]
    assert [len(json.loads(answered[index].body)["predictions"]) for index in (0, 2)] == [5, 1]
    assert max(calls) == 2


class Decoding(ObjectDetector):
    def decode_row(self, row: Any) -> torch.Tensor:
        return super().decode_row(row)


class Preprocessing(ObjectDetector):
    def preprocess(self, data: list[Any]) -> Any:
        return [self.decode_row(each) for each in data]


@pytest.mark.parametrize("kind", [Decoding, Preprocessing])
def test_a_step_of_ones_own_is_one_group(model: Groups, kind: type[ObjectDetector]) -> None:
    assert widths(answers(detector_with(model, kind), image(90), image(91))) == [90, 91]
    assert model.calls == [[90, 91]]
