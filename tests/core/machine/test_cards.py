"""GPUs are those that NVML tells, as far as CUDA_VISIBLE_DEVICES leaves them; `--gpus` has the last word."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tsctl.daemon.core.machine.cards import (
    Card,
    FoundCards,
    ask_cards,
    find_cards,
    missing_cards,
    names_for_cuda,
    parse_cards,
    used_cards,
    visible_cards,
)

TOLD = {
    "driver": "580.159.04", "cuda": 13000, "trouble": "",
    "cards": [
        {
            "index": 0, "uuid": "GPU-fdb4", "name": "NVIDIA H100", "part": False,
            "total": 85520809984, "free": 85017493504, "used": 0, "busy": 7,
        },
        {"index": 1, "trouble": "GPU is lost"},
    ],
}  # fmt: skip
FOUR = [Card(index=index, uuid=f"GPU-{index}{index}") for index in range(4)]
PARTS = [Card(index=0, uuid=f"MIG-{name}", part=True) for name in "ab"] + [Card(index=1, uuid="GPU-c")]
UNNAMED = [Card(index=0), Card(index=1)]


def directory(root: Path, count: int) -> Path:
    for index in range(count):
        (root / f"0000:0{index}:00.0").mkdir()
    return root


def test_what_nvml_tells_of_each_card_is_read() -> None:
    found = parse_cards(json.dumps(TOLD))

    assert found.cards == [
        Card(index=0, uuid="GPU-fdb4", name="NVIDIA H100", total=85520809984, free=85017493504, busy=7)
    ]
    assert (found.driver, found.cuda) == ("580.159.04", 13000)
    assert found.troubles == ["GPU 1 is not used: GPU is lost"]


@pytest.mark.parametrize("text", ["", "[]", '{"cards": [{"index": 0, "colour": 1}], "trouble": ""}', "Segmentation"])
def test_a_process_that_prints_anything_else_has_failed(text: str) -> None:
    assert parse_cards(text) == FoundCards(troubles=["NVML does not answer: its process has failed"])


def test_a_driver_that_hangs_costs_a_timeout() -> None:
    found = ask_cards(0.2, [sys.executable, "-S", "-c", "import time; time.sleep(600)"])

    assert found == FoundCards(troubles=["NVML does not answer: its driver has hung for 0.2 s"])
    no_process = "NVML does not answer: no process: No such file or directory"
    assert ask_cards(1.0, ["/nowhere/none"]).troubles == [no_process]


def test_nvml_is_believed_more_than_the_kernel_module(tmp_path: Path) -> None:
    """A pod may open one card of the two that are listed; LXC and WSL2 list none."""
    one = FoundCards(FOUR[:1], "580.1")

    assert find_cards(lambda: one, lambda: True, directory(tmp_path, 2)) is one
    assert find_cards(lambda: one, lambda: True, tmp_path / "none") is one
    assert find_cards(lambda: pytest.fail("asked"), lambda: False, tmp_path) == FoundCards(UNNAMED), "without NVML"


def test_where_nvml_fails_the_kernel_module_counts_and_the_reason_is_told(tmp_path: Path) -> None:
    failed = FoundCards(troubles=["NVML does not answer: Driver/library version mismatch"])

    found = find_cards(lambda: failed, lambda: True, directory(tmp_path, 1))

    assert found == FoundCards([Card(index=0)], troubles=failed.troubles)


@pytest.mark.parametrize(
    ("visible", "cards", "places"),
    [
        pytest.param(None, FOUR, [0, 1, 2, 3], id="nothing hides any"),
        pytest.param("", FOUR, [], id="an empty list hides all"),
        pytest.param("-1", FOUR, [], id="so does -1"),
        pytest.param("2, 0", FOUR, [2, 0], id="two by number, in their order"),
        pytest.param("0,9,1", FOUR, [0], id="a number that is none ends the list"),
        pytest.param("1,-1,2", FOUR, [1], id="so does a negative one"),
        pytest.param("1,x,2", FOUR, [1], id="and anything else"),
        pytest.param("0,0", FOUR, [], id="a card named twice hides all"),
        pytest.param("0,GPU-00", FOUR, [], id="also by two names"),
        pytest.param("GPU-33,GPU-1", FOUR, [3, 1], id="by UUIDs, which may be short"),
        pytest.param("GPU-0,GPU-", FOUR, [0], id="as long as they are unique"),
        pytest.param("GPU-77,1", FOUR, [], id="of this machine"),
        pytest.param("MIG-b,1", PARTS, [1, 2], id="a part, and a whole card"),
        pytest.param("0", PARTS, [0, 1], id="the number of a card stands for its parts"),
    ],
)
def test_cuda_visible_devices(visible: str | None, cards: Sequence[Card], places: list[int]) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}

    assert visible_cards(environment, cards) == [cards[place] for place in places]


def test_without_nvml_a_uuid_is_left_to_cuda() -> None:
    found = visible_cards({"CUDA_VISIBLE_DEVICES": "GPU-8932,1"}, UNNAMED)

    assert names_for_cuda(found, UNNAMED) == ["GPU-8932", "1"]


@pytest.mark.parametrize(
    ("count", "visible", "found", "names"),
    [
        pytest.param(None, None, FOUR, ["0", "1", "2", "3"], id="all by default"),
        pytest.param(2, None, FOUR, ["0", "1"], id="the first of them"),
        pytest.param(0, None, FOUR, [], id="none"),
        pytest.param(1, "3,2", FOUR, ["3"], id="of the visible ones"),
        pytest.param(2, None, [], ["0", "1"], id="more than were found"),
        pytest.param(2, "GPU-a,3", [], ["GPU-a", "3"], id="by the names of the environment"),
    ],
)
def test_the_operator_has_the_last_word(
    count: int | None, visible: str | None, found: Sequence[Card], names: list[str]
) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}

    assert names_for_cuda(used_cards(environment, found, count), found) == names


@pytest.mark.parametrize(
    ("count", "visible", "found", "told"),
    [
        pytest.param(4, None, [], ["is 4, and none was found"], id="TorchServe would take the processor"),
        pytest.param(4, "0,1", FOUR, ["is 4, and 2 were found"], id="hidden ones are not found"),
        pytest.param(4, None, FOUR, [], id="as many as were found"),
        pytest.param(None, None, [], [], id="nothing is asked for"),
        pytest.param(0, None, [], [], id="none is asked for"),
    ],
)
def test_more_gpus_than_were_found_are_warned_of(
    count: int | None, visible: str | None, found: Sequence[Card], told: list[str]
) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}

    troubles = missing_cards(environment, found, count)

    assert [trouble.partition(" (TorchServe's `number_of_gpu`) ")[2].partition(":")[0] for trouble in troubles] == told


@pytest.mark.parametrize(
    ("found", "names"),
    [
        pytest.param(FOUR[:2], ["0", "1"], id="by number, which every library reads"),
        pytest.param(PARTS, ["MIG-a", "MIG-b", "GPU-c"], id="parts of cards, and what is beside them, by UUID"),
        pytest.param(FOUR[1:3], ["GPU-11", "GPU-22"], id="cards beside a lost one by UUID"),
    ],
)
def test_names_of_cards_for_cuda(found: Sequence[Card], names: list[str]) -> None:
    assert names_for_cuda(found, found) == names
