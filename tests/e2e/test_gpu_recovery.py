"""After an error of a GPU, workers serve again; without a GPU, they say so (on null cards, tests/kit/null_gpu)."""

from pathlib import Path

import pytest

from tests.e2e.on_cards import pack_image_classifier, photograph, start_on
from tests.e2e.served import Served
from tests.kit.null_gpu.cards import cards_or_skip


@pytest.mark.parametrize(
    "kernel", [pytest.param(0, id="between batches"), pytest.param(1, id="by a batch's first kernel")]
)
def test_a_classifier_whose_context_is_broken_runs_the_batch_on_another_worker(
    kernel: int, idle: Served, tmp_path: Path
) -> None:
    cards = cards_or_skip(tmp_path)
    start_on(idle, cards)
    idle.tsctl("register", pack_image_classifier(idle, "images", batch_size=1), "--workers", "1")
    [first] = idle.pids("images")
    assert idle.ask("/predictions/images", photograph()).status == 200

    worker = cards.of(first)
    worker.break_by_kernel(kernel) if kernel else worker.break_context()

    assert idle.ask("/predictions/images", photograph()).status == 200
    assert idle.pids("images") != [first]
    assert "device-side assert" in idle.describe("images")["tsctl"]["lastExit"]


def test_a_worker_whose_card_torch_cannot_use_fails_its_load_unless_its_model_allows_the_processor(
    idle: Served, tmp_path: Path
) -> None:
    start_on(idle, cards_or_skip(tmp_path, 0, listed=1))

    refused = idle.run("register", pack_image_classifier(idle, "images", batch_size=1))

    assert (refused.returncode, "No CUDA GPUs are available" in refused.stderr) == (1, True)
    idle.tsctl("register", pack_image_classifier(idle, "either", batch_size=1, config="deviceType: auto\n"))
    assert idle.ask("/predictions/either", photograph()).status == 200
