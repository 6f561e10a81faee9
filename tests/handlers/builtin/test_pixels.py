"""Threads that decode a batch hold no more pixels at a time than one image may have."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from PIL import Image

from handlers.builtin.support.decoders import admission
from handlers.builtin.vision import VisionHandler
from handlers.sdk.errors import UnreadablePayload


def image(pixels: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (pixels, 1)).save(buffer, "PNG")
    return buffer.getvalue()


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


def test_an_image_that_fails_leaves_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    handler = VisionHandler()

    def process(picture: Image.Image) -> torch.Tensor:
        raise UnreadablePayload(f"{picture.width}")

    handler.image_processing = process

    assert list(handler.prepare([{"body": image(90)}, {"body": image(90)}])) == [0, 1]  # else this would wait forever


def test_a_larger_image_is_admitted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with admission() as admit:
        admit(150)  # Pillow warns of it, and reads it
