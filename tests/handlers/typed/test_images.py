"""An image of too many pixels is refused before it is decoded."""

import struct
import zlib

import pytest
from PIL import EpsImagePlugin, Image

from tests.handlers.images import encoded
from tests.handlers.typed.calls import ask, told


def png(width: int = 3, height: int = 2, *, claimed: int | None = None) -> bytes:
    """Return a white PNG; its header may claim another width."""
    body = bytearray(encoded(Image.new("L", (width, height), 255)))
    if claimed is not None:
        body[16:20] = struct.pack(">I", claimed)
        body[29:33] = struct.pack(">I", zlib.crc32(body[12:29]))
    return bytes(body)


def sizes(images: list[Image.Image]) -> list[str]:
    return [f"{each.width}x{each.height}" for each in images]


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


def test_an_image_that_is_a_program_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *given: ran.append(given))

    [answer] = ask(sizes, b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n{} loop\n%%EOF\n")

    assert (answer.status, ran) == (400, [])
    assert b"the image is EPS, which is not read here: send JPEG or PNG" in answer.body
