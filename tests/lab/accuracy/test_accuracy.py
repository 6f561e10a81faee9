"""The same seed draws the same crops, and the table has a row for each set."""

import io
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from tests.lab.accuracy import photographs
from tests.lab.accuracy.__main__ import Row, table
from tests.lab.accuracy.models import Archive


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> Iterator[tuple[str, Image.Image]]:
        for seed, size in enumerate(((60, 40), (40, 90))):
            noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
            yield f"{seed}.png", Image.fromarray(noise)

    monkeypatch.setattr(photographs, "photographs", made)


@pytest.mark.usefixtures("two")
def test_the_same_seed_draws_the_same_crops_within_the_photographs() -> None:
    first, again, other = photographs.crops(7), photographs.crops(7), photographs.crops(8)

    assert first == again != other
    assert len(first) == 2 * photographs.EACH
    for encoded in first:
        image = Image.open(io.BytesIO(encoded))
        assert image.width == image.height
        assert photographs.LEAST * 40 - 1 <= image.width <= 40


def test_a_row_says_what_a_set_costs_and_keeps_and_what_the_check_says() -> None:
    rows = [Row("none", {1: 30.0, 8: 40.04}, 1.0, ""), Row("bf16", {1: 20.0, 8: 15.0}, 0.952, "refused")]

    lines = table(rows, Archive("Net", {}, {}), 575)

    assert lines[0].startswith(
        "| Net | CPU an image, 1 in a batch | CPU an image, 8 in a batch | best class kept, of 575"
    )
    assert lines[2:] == [
        "| `none` | 30.0 ms | 40.0 ms | 100.0% |  |",
        "| default + `bf16` | 20.0 ms | 15.0 ms | 95.2% | refused |",
    ]
