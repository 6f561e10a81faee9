"""After an error of a GPU, workers serve again; without a GPU, they say so (on null cards, tests/kit/null_gpu)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.on_cards import pack_image_classifier, photograph, start_on
from tests.e2e.served import Answer, Served
from tests.e2e.test_workers import worker_pids
from tests.kit.null_gpu.cards import cards_or_skip


def ask(served: Served, mib: int = 1) -> Answer:
    return served.ask("/predictions/on_card", str(mib).encode())


@pytest.mark.parametrize(
    "kernel", [pytest.param(0, id="between batches"), pytest.param(1, id="by a batch's first kernel")]
)
def test_a_classifier_whose_context_is_broken_runs_the_batch_on_another_worker(
    kernel: int, idle: Served, tmp_path: Path
) -> None:
    cards = cards_or_skip(tmp_path)
    start_on(idle, cards)
    idle.tsctl("register", pack_image_classifier(idle, "images", batch_size=1), "--workers", "1")
    [first] = worker_pids(idle, "images")
    assert idle.ask("/predictions/images", photograph()).status == 200

    worker = cards.of(first)
    worker.break_by_kernel(kernel) if kernel else worker.break_context()

    assert idle.ask("/predictions/images", photograph()).status == 200
    assert worker_pids(idle, "images") != [first]
    assert "device-side assert" in idle.describe("images")["tsctl"]["lastExit"]


def test_a_batch_size_that_does_not_fit_is_learnt(idle: Served, tmp_path: Path) -> None:
    start_on(idle, cards_or_skip(tmp_path, memory=2 << 30))
    idle.register("on_card", "--batch-size", "8", "--max-delay", "100", "--isolate")

    with ThreadPoolExecutor(16) as clients:  # 8 rows need 2 400 MiB, 4 half of it
        statuses = [answer.status for answer in clients.map(lambda _: ask(idle, 300), range(64))]

    assert statuses == [200] * 64
    kinds = [event["kind"] for event in idle.describe("on_card")["tsctl"]["events"]]
    assert "batch-capped" in kinds, kinds


def test_a_worker_that_was_given_a_card_which_torch_cannot_use_fails_its_load(idle: Served, tmp_path: Path) -> None:
    start_on(idle, cards_or_skip(tmp_path, 0, listed=1))

    refused = idle.run("register", pack_image_classifier(idle, "images", batch_size=1))

    assert (refused.returncode, "No CUDA GPUs are available" in refused.stderr) == (1, True)


def test_the_processor_takes_its_place_where_the_model_allows_it(idle: Served, tmp_path: Path) -> None:
    start_on(idle, cards_or_skip(tmp_path, 0, listed=1))

    idle.tsctl("register", pack_image_classifier(idle, "images", batch_size=1, config="deviceType: auto\n"))

    assert idle.ask("/predictions/images", photograph()).status == 200
