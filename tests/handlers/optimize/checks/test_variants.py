"""More inputs from few."""

from functools import partial

import pytest
import torch

from tsctl.handlers.optimize.checks.samples import ENOUGH, variant, varied

IMAGE = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("samples", "inputs"), [(1, ENOUGH), (3, ENOUGH), (ENOUGH - 1, ENOUGH), (ENOUGH, ENOUGH), (50, 50)]
)
def test_every_sample_counts_and_few_are_varied(samples: int, inputs: int) -> None:
    made = list(varied([partial(torch.add, IMAGE, number) for number in range(samples)]))

    assert len(made) == inputs
    assert all(torch.equal(made[number], IMAGE + number) for number in range(samples))
    assert len({tensor.numpy().tobytes() for tensor in made}) == inputs


def test_an_image_is_mirrored_and_a_row_of_numbers_is_not() -> None:
    row = torch.arange(100.0)[None]
    assert torch.equal(variant(7, IMAGE), variant(7, IMAGE)), "the same each time"

    assert torch.corrcoef(torch.stack([variant(4, IMAGE).flatten(), IMAGE.flip(-1).flatten()]))[0, 1] > 0.98
    assert torch.corrcoef(torch.stack([variant(4, row).flatten(), row.flatten()]))[0, 1] > 0.98


def test_whole_numbers_have_no_variants() -> None:
    words = torch.arange(9)

    (first, *_, last) = varied([lambda: {"words": words}])

    assert first["words"] is last["words"] is words
