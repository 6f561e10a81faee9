"""A card in two parts (MIG) is two GPUs for the daemon, and each worker sees its own (tests/kit/null_gpu)."""

from collections.abc import Iterator

import pytest

from tests.e2e.on_cards import start_on
from tests.e2e.served import Served
from tests.kit.null_gpu.cards import Cards, cards_or_skip
from tests.kit.shelf import needs

GIB = 2**30


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Cards:
    return cards_or_skip(tmp_path_factory.mktemp("null"), parts=2)


@pytest.fixture(scope="module")
def served(cards: Cards, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served")) as served:
        start_on(served, cards)
        served.register("on_card", "--workers", "2")
        yield served


def test_each_part_is_a_gpu_and_each_worker_has_its_own_as_gpu_0(served: Served, cards: Cards) -> None:
    assert served.status["gpus"] == [
        {"name": "Null Card MIG", "uuid": f"MIG-0000000{part}-0000-0000-0000-000000000000", "memory": GIB}
        for part in (1, 2)
    ]
    pids = served.pids("on_card")
    used = [(cards.of(pid)["card_4"] > 0, cards.of(pid)["card_5"] > 0) for pid in pids]
    answers = {served.ask("/predictions/on_card", b"1").body for _ in range(8)}

    assert sorted(used) == [(False, True), (True, False)]
    assert answers <= {f"{pid} 0".encode() for pid in pids}


def test_what_a_worker_holds_is_told_under_the_daemons_number_and_doctor_tries_each_part(served: Served) -> None:
    held = {gpu: size for worker in served.describe("on_card")["workers"] for gpu, size in worker["gpuMemory"].items()}

    assert held.keys() == {"0", "1"}
    assert all(0 < size < GIB for size in held.values())
    said = " ".join(served.run("doctor").stdout.split())
    assert "2 NVIDIA GPUs, driver 580.0, parts (MIG) as one each: Null Card MIG (1.0 GiB)" in said


@needs("prometheus")
def test_the_metrics_name_each_part(served: Served) -> None:
    assert 'tsctl_gpu_memory_total_bytes{gpu="1",name="Null Card MIG",uuid="MIG-00000002' in served.metrics
    assert 'DeviceId="1"' in served.metrics


@needs("residency")
def test_a_number_of_gpus_leaves_the_first_parts_and_a_budget_is_of_each(cards: Cards, idle: Served) -> None:
    idle.environment |= {"TSCTL_GPUS": "1", "TSCTL_MODELS_MEMORY": "gpu=500MiB"}
    start_on(idle, cards)
    idle.register("on_card", "--loading", "on_demand")

    refused = idle.ask("/predictions/on_card", b"1")

    assert [gpu["uuid"][:12] for gpu in idle.status["gpus"]] == ["MIG-00000001"]
    assert (refused.status, "620 MiB of 500 MiB on gpu0 do not fit" in refused.json["message"]) == (503, True)
