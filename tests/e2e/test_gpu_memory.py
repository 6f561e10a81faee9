"""What workers hold on a GPU, under the daemon's numbers (on null cards, tests/kit/null_gpu)."""

from pathlib import Path

from tests.e2e.on_cards import start_on
from tests.e2e.served import Served, eventually
from tests.e2e.test_workers import worker_pids
from tests.kit.null_gpu.cards import cards_or_skip

MIB = 2**20


def held(served: Served, model: str) -> dict[str, int]:
    (worker,) = served.describe(model)["workers"]
    found: dict[str, int] = worker["gpuMemory"]
    return found


def test_the_only_visible_card_is_number_0_for_everybody(idle: Served, tmp_path: Path) -> None:
    cards = cards_or_skip(tmp_path, 2)
    idle.environment["CUDA_VISIBLE_DEVICES"] = "1"
    start_on(idle, cards)
    idle.register("on_card", "--workers", "1")
    [pid] = worker_pids(idle, "on_card")
    before = held(idle, "on_card")

    assert idle.ask("/predictions/on_card", b"300").status == 200

    eventually(lambda: held(idle, "on_card")["0"] >= before["0"] + 300 * MIB, "the worker tells of its memory")
    assert cards.of(pid)["card_1"] > 0
    assert held(idle, "on_card").keys() == {"0"}
    assert {each["name"]: [*each["gpuMemory"]] for each in idle.status["models"]} == {"on_card": ["0"]}
    shown = idle.tsctl("metrics")
    assert 'tsctl_gpu_memory_total_bytes{gpu="0",name="Null Card"' in shown
    assert 'DeviceId="1"' not in shown
