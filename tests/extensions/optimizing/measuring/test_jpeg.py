"""The size of a JPEG is read from its header."""

import io

import pytest
from PIL import Image

from tsctl.daemon.extensions.optimizing.measuring.jpeg import is_large_jpeg, jpeg_size


def image(width: int, height: int, kind: str = "JPEG", **options: bool) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("progressive", [False, True])
def test_width_and_height(progressive: bool) -> None:
    assert jpeg_size(image(40, 30, progressive=progressive)) == (40, 30)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(image(40, 30, "PNG"), id="another format"),
        pytest.param(image(40, 30)[:20], id="a part of the header"),
        pytest.param(b"\xff\xd8\xff\xda" + bytes(20), id="pixels without a frame"),
    ],
)
def test_what_is_no_jpeg_has_no_size(body: bytes) -> None:
    assert jpeg_size(body) is None


def test_large_is_the_shorter_side() -> None:
    assert is_large_jpeg(image(1200, 1024))
    assert not is_large_jpeg(image(2000, 1023))
