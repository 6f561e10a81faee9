"""Tensors cross the bus together: in one pinned copy for each dtype, which one event tells the end of."""

import json
from collections import OrderedDict
from typing import Any

import pytest
import torch

from tests.kit.null_gpu.cards import cards_or_skip
from tsctl.handlers.requests.gpu_copies import fetched, side_by_side, to_device
from tsctl.handlers.requests.rows import in_memory

BATCH = torch.arange(24, dtype=torch.uint8).view(4, 2, 3)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (2, 3)])
def test_rows_that_follow_one_another_are_one_tensor_of_the_same_memory(start: int, end: int) -> None:
    whole = side_by_side([BATCH[row] for row in range(start, end)])

    assert whole is not None
    assert torch.equal(whole, BATCH[start:end])
    assert whole.data_ptr() == BATCH[start].data_ptr()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([BATCH[0], BATCH[2]], id="one between is missing"),
        pytest.param([BATCH[1], BATCH[0]], id="another order"),
        pytest.param([BATCH[0], BATCH[0]], id="the same twice"),
        pytest.param([BATCH[0], BATCH[1].clone()], id="another memory"),
        pytest.param([BATCH[0].T, BATCH[1].T], id="another order in memory"),
        pytest.param([BATCH[0], BATCH[1].view(3, 2)], id="another shape"),
    ],
)
def test_other_rows_are_not(rows: list[torch.Tensor]) -> None:
    assert side_by_side(rows) is None


def test_what_is_in_main_memory_stays_the_same_objects() -> None:
    value = [{"boxes": BATCH[0], "names": ["a"]}, 3, None, [1.5, 2.5], OrderedDict(out=(BATCH[1],))]

    assert fetched(value) is value


def test_an_item_that_holds_itself_stays_for_the_encoder_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    itself: list[Any] = []
    itself.append(itself)
    items = [itself, {"row": BATCH[0]}]

    assert in_memory(items) is items


def test_rows_for_the_processor_are_only_moved() -> None:
    rows = [BATCH[0], BATCH[1].float()]

    assert [there is row for there, row in zip(to_device(rows, torch.device("cpu")), rows, strict=True)] == [True] * 2


PROGRAM = """
import json, os
from pathlib import Path
from typing import NamedTuple
import torch
from tests.kit.null_gpu.cards import Delta, OnCards
from tsctl.handlers.requests import gpu_copies
from tsctl.handlers.requests.gpu_copies import fetched, sent, side_by_side, stacked, staged, to_device

class Box(NamedTuple):
    corners: torch.Tensor
    label: torch.Tensor

device = torch.device("cuda:0")
torch.ones(1, device=device)
here, found = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid()))), {}
NAMES = ("to_card_pinned", "to_card_pageable", "default_to_card", "from_card_pinned", "from_card_pageable",
    "default_from_card", "stream_syncs", "event_syncs")

def counted(name, run):
    run()  # a first one allocates
    with Delta(here) as done:
        made = run()
    found[name] = {each: done[each] for each in NAMES if done[each]}
    return made

batch = torch.arange(12.0).view(3, 4)
[there] = counted("a batch there", lambda: to_device([batch], device))
tall = torch.arange(24.0).view(2, 3, 4).mT  # another order in memory
alike = counted("rows of one shape there", lambda: to_device([tall[0], tall[1].contiguous()], device))
found["alike"] = [side_by_side(alike) is not None, *(torch.equal(a.cpu(), b) for a, b in zip(alike, tall))]
mixed = to_device([there[0], batch[1]], device)
found["there already"] = [mixed[0].data_ptr() == there.data_ptr(), mixed[1].is_cuda]
one = counted("a batch of rows", lambda: stacked([batch[0], batch[1].clone(), batch[2]], device))
found["one"] = [one.is_cuda, torch.equal(one.cpu(), batch)]
try:
    stacked([batch[0], batch[1, :2]], device)
except RuntimeError as error:
    found["no batch"] = str(error)
whole = sent({"rows": [batch[0], None, batch[1]], "several": ([batch[2]], "x")}, device)
found["sent"] = [[each.is_cuda, torch.equal(each.cpu(), batch[place])]
    for place, each in enumerate((whole["rows"][0], whole["rows"][2], whole["several"][0][0]))]
found["sent"] += [whole["rows"][1], whole["several"][1]]
gpu_copies.MOST_STAGED = batch.nbytes - 1
[much] = counted("more than is staged", lambda: staged([batch], device))
found["much"] = torch.equal(much.cpu(), batch)
found["stays"] = counted("more than is sent", lambda: sent({"rows": [batch]}, device))["rows"][0] is batch
rows = counted("rows of several shapes there", lambda: to_device([batch[0], batch[:2], batch[0].long()], device))
found["equal"] = [there.is_cuda, torch.equal(there.cpu(), batch)]
found["shapes"] = [[*row.shape, row.is_cuda, row.cpu().flatten().tolist()] for row in rows]
back = counted("rows of a batch back", lambda: fetched(list(there)))
found["rows"] = [each.tolist() for each in back]
several = [Box(there[0], torch.tensor(7).cuda()), {"scores": [there[1, :2], there[2]], "name": "x"}, 3]
[box, scores, three] = counted("several dtypes back", lambda: fetched(several))
tensors = [box.corners, *scores["scores"]]  # joined by a kernel, which does nothing here
found["several"] = [type(box) is Box, [[*each.shape] for each in tensors], [each.is_cuda for each in tensors]]
found["several"] += [box.label.item(), scores["name"], three]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cards_or_skip(tmp_path_factory.mktemp("null")).run(PROGRAM))
    return found


@pytest.mark.heavy
def test_rows_go_to_a_gpu_together_and_are_in_their_shapes_there(seen: dict[str, Any]) -> None:
    assert seen["a batch there"] == {"to_card_pinned": 1}
    assert seen["rows of one shape there"] == {"to_card_pinned": 1}
    assert seen["alike"] == [True] * 3
    assert seen["rows of several shapes there"] == {"to_card_pinned": 2}, "one for each dtype"
    assert seen["equal"] == [True, True]
    assert seen["shapes"] == [
        [4, True, [0.0, 1.0, 2.0, 3.0]], [2, 4, True, [*map(float, range(8))]], [4, True, [0, 1, 2, 3]],
    ]  # fmt: skip


@pytest.mark.heavy
def test_rows_become_one_batch_there_without_another_copy(seen: dict[str, Any]) -> None:
    assert seen["a batch of rows"] == {"to_card_pinned": 1}
    assert seen["one"] == [True, True]
    assert "stack expects each tensor to be equal size" in seen["no batch"]


@pytest.mark.heavy
def test_a_row_that_is_on_the_gpu_already_stays(seen: dict[str, Any]) -> None:
    assert seen["there already"] == [True, True]


@pytest.mark.heavy
def test_tensors_within_a_value_go_to_a_gpu_and_what_is_none_stays(seen: dict[str, Any]) -> None:
    assert seen["sent"] == [[True, True], [True, True], [True, True], None, "x"]


@pytest.mark.heavy
def test_a_batch_that_would_pin_much_memory_is_not_staged(seen: dict[str, Any]) -> None:
    assert seen["more than is staged"]["to_card_pageable"] == 1
    assert seen["much"]


@pytest.mark.heavy
def test_a_value_with_so_much_is_left_to_its_user(seen: dict[str, Any]) -> None:
    assert seen["more than is sent"] == {}
    assert seen["stays"]


@pytest.mark.heavy
def test_tensors_come_back_together_and_are_waited_for_once(seen: dict[str, Any]) -> None:
    assert seen["rows of a batch back"] == {"from_card_pinned": 1, "event_syncs": 1}
    assert seen["rows"] == torch.arange(12.0).view(3, 4).tolist()
    assert seen["several dtypes back"] == {"from_card_pinned": 2, "event_syncs": 1}
    assert seen["several"] == [True, [[4], [2], [4]], [False] * 3, 7, "x", 3]
