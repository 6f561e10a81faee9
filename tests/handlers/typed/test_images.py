"""Images: decoded by Pillow within a limit of pixels, and encoded as PNG."""

import io
import struct
import zlib
from typing import Any

import PIL.Image
import pytest
from PIL import Image

from tests.handlers.typed.calls import ask, request, runtime_of, told, type_of


def png(width: int = 3, height: int = 2, *, claimed: int | None = None) -> bytes:
    """Return a white PNG; its header may claim another width."""
    buffer = io.BytesIO()
    Image.new("L", (width, height), 255).save(buffer, "PNG")
    body = bytearray(buffer.getvalue())
    if claimed is not None:
        body[16:20] = struct.pack(">I", claimed)
        body[29:33] = struct.pack(">I", zlib.crc32(body[12:29]))
    return bytes(body)


def sizes(images: list[Image.Image]) -> list[str]:
    return [f"{each.width}x{each.height}" for each in images]


def by_the_module(images: list[Image]) -> list[str]:  # type: ignore[valid-type]
    return [f"{each.width}x{each.height}" for each in images]  # type: ignore[attr-defined]


def one(image: PIL.Image.Image) -> str:
    return f"{image.width}x{image.height}"


@pytest.mark.parametrize("function", [sizes, by_the_module, one])
def test_an_image_is_named_by_its_class_or_by_its_module(function: Any) -> None:
    assert told(ask(function, png())) == [(200, "3x2")]
    assert runtime_of(function).declared.inputs[0].kind == "image"  # type: ignore[union-attr]


def test_a_file_that_is_no_image_fails_its_row_only() -> None:
    answers = ask(sizes, png(), b"nothing", b"", png()[:40])

    assert [each.status for each in answers] == [200, 400, 400, 400]
    assert answers[1].body == (
        b"`images`: The request's 7 bytes are not an image: cannot identify image file (Request r1)"
    )


@pytest.mark.parametrize("most", [100, 1e2])
def test_an_image_of_too_many_pixels_is_refused_before_they_are_decoded(
    most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", most)
    monkeypatch.setattr(Image, "warnings", Silent)

    answers = ask(sizes, png(10, 10), png(claimed=75))

    assert told(answers[:1]) == [(200, "10x10")]
    assert answers[1].body == f"`images`: the image has 75 × 2 pixels; at most {most} are read (Request r1)".encode()


class Silent:
    """Stands for `warnings`: Pillow warns of such an image, too."""

    @staticmethod
    def warn(*arguments: object) -> None: ...


def test_a_decompression_bomb_is_refused() -> None:
    [answer] = ask(sizes, png(claimed=2**31 - 1))

    assert answer.status == 400


def test_an_image_within_json_is_base64() -> None:
    import base64

    def predict(image: Image.Image, text: str) -> str:
        return f"{image.width} {text}"

    text = base64.b64encode(png())
    rows = [
        request(("body", "", b'{"image":"' + text + b'","text":"a"}')),
        request(("body", "", b'{"image":"?","text":"a"}'), number=1),
        request(("image", "image/png", png()), ("text", "", b"b"), number=2),
    ]

    answers = ask(predict, *rows)

    assert [each.status for each in answers] == [200, 400, 200]
    assert [answers[0].body, answers[2].body] == [b"3 a", b"3 b"]
    assert answers[1].body.startswith(b"`image`: not base64: ")


def test_an_image_is_answered_as_png() -> None:
    def predict(image: Image.Image) -> Image.Image:
        return image.rotate(90, expand=True)

    [answer] = ask(predict, png())

    assert type_of(answer) == "image/png"
    with Image.open(io.BytesIO(answer.body)) as image:
        assert image.size == (2, 3)
