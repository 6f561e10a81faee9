"""The request of a trial: what was recorded, else the archive's sample, else an image."""

import io
from pathlib import Path

from PIL import Image

from tsctl.daemon.extensions.optimizing.program import made_up_image, sample_for
from tsctl.daemon.models.archives.sample import Sample


def test_the_image_that_is_made_up_can_be_read_and_is_the_same_each_time() -> None:
    image = Image.open(io.BytesIO(made_up_image()))

    assert (image.size, image.mode) == ((500, 375), "RGB")
    assert len({image.getpixel((x, 0)) for x in range(500)}) > 400
    assert made_up_image() == made_up_image()


def test_a_recorded_request_comes_before_the_archives_sample(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(b"cat")
    recorded = Sample(b"dog", "image/jpeg", "recorded")

    assert sample_for(recorded, tmp_path, {"warmup": "cat.jpg"}, "image_classifier") is recorded
    found = sample_for(None, tmp_path, {"warmup": "cat.jpg"}, "image_classifier")
    assert found is not None and found.body == b"cat"


def test_only_a_handler_of_images_gets_one_made_up(tmp_path: Path) -> None:
    made = sample_for(None, tmp_path, {}, "image_segmenter")

    assert made is not None and made.content_type == "image/png"
    assert sample_for(None, tmp_path, {}, "text_classifier") is None
