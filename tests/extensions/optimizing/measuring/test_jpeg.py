"""A JPEG is large by the shorter side that its header tells."""

import io
import math
from pathlib import Path

import pytest
from PIL import Image

from tsctl.daemon.extensions.optimizing.measuring.candidates import is_large_jpeg, least_large_side


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
    assert not is_large_jpeg(body, 1024)


@pytest.mark.parametrize("progressive", [False, True])
def test_large_is_the_shorter_side(progressive: bool) -> None:
    assert is_large_jpeg(image(1200, 1024, progressive=progressive), 1024)
    assert not is_large_jpeg(image(2000, 1023), 1024)


@pytest.mark.parametrize(
    ("config", "least"),
    [
        pytest.param({}, 1280, id="as ImageNet's usual models"),
        pytest.param({"resize": 128, "crop": 112}, 640, id="small images"),
        pytest.param({"resize": [320, 300]}, 1600, id="the longer of two sides"),
        pytest.param({"interpolation": "bicubic"}, 1536, id="a wider filter"),
        pytest.param({"interpolation": "box"}, math.inf, id="a filter that allows none"),
        pytest.param({"resize": "big"}, 1280, id="a setting of somebody else"),
    ],
)
def test_what_is_large_follows_the_models_resize(tmp_path: Path, config: dict[str, object], least: float) -> None:
    assert least_large_side(tmp_path, config) == least


def test_what_is_large_follows_the_files_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"pretrained_cfg": {"input_size": [3, 448, 448], "crop_pct": 0.875}}')

    assert least_large_side(tmp_path, {}) == 3072, "timm's usual filter is bicubic"
