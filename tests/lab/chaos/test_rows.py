"""A few seconds of killed workers under requests that come and go; `chaos-rows` of tests.lab runs ten minutes."""

from pathlib import Path

import pytest

from tests.lab.chaos.rows import CONFIGS, storm


@pytest.mark.slow
@pytest.mark.heavy
def test_nothing_is_unanswered_out_of_order_or_anothers(tmp_path: Path) -> None:
    made = storm(tmp_path, 8.0, seed=1)

    assert made.wrong == []
    assert made.kills > 5
    for model in CONFIGS:
        assert made.told[f"{model} right"] > 0
    assert made.told["counter told that its state is lost"] > 0
