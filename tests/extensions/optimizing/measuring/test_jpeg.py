"""A JPEG is large by the shorter side that its header tells."""

import io

import pytest
from PIL import Image

from tsctl.daemon.extensions.optimizing.measuring.candidates import is_large_jpeg


def image(width: int, height: int, kind: str = "JPEG", **options: bool) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(image(1200, 1200, "PNG"), id="another format"),
        pytest.param(image(1200, 1200)[:20], id="a part of the header"),
        pytest.param(b"\xff\xd8\xff\xda" + bytes(20), id="pixels without a frame"),
    ],
)
def test_what_is_no_jpeg_is_not_large(body: bytes) -> None:
    assert not is_large_jpeg(body)


@pytest.mark.parametrize("progressive", [False, True])
def test_large_is_the_shorter_side(progressive: bool) -> None:
    assert is_large_jpeg(image(1200, 1024, progressive=progressive))
    assert not is_large_jpeg(image(2000, 1023))
