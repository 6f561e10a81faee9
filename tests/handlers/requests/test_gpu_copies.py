"""Tensors cross the bus together: in one pinned copy for each dtype, which one event tells the end of."""

from collections import OrderedDict
from pathlib import Path
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
import os
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
here = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid())))
NAMES = ("to_card_pinned", "to_card_pageable", "default_to_card", "from_card_pinned", "from_card_pageable",
    "default_from_card", "stream_syncs", "event_syncs")

def check(claim, found, expected):
    assert found == expected, f"{claim}: {found}"

def counted(claim, run, **did):
    run()  # a first one allocates
    with Delta(here) as done:
        made = run()
    check(claim, {each: done[each] for each in NAMES if done[each]}, did)
    return made

batch = torch.arange(12.0).view(3, 4)
[there] = counted("a batch goes in one pinned copy", lambda: to_device([batch], device), to_card_pinned=1)
tall = torch.arange(24.0).view(2, 3, 4).mT  # another order in memory
alike = counted("so do rows of one shape",
    lambda: to_device([tall[0], tall[1].contiguous()], device), to_card_pinned=1)
check("which are side by side there, in their order",
    [side_by_side(alike) is not None, *(torch.equal(a.cpu(), b) for a, b in zip(alike, tall))], [True] * 3)
mixed = to_device([there[0], batch[1]], device)
check("a row that is on the GPU already stays",
    [mixed[0].data_ptr() == there.data_ptr(), mixed[1].is_cuda], [True, True])
one = counted("rows become one batch there without another copy",
    lambda: stacked([batch[0], batch[1].clone(), batch[2]], device), to_card_pinned=1)
check("with their numbers", [one.is_cuda, torch.equal(one.cpu(), batch)], [True, True])
try:
    stacked([batch[0], batch[1, :2]], device)
except RuntimeError as error:
    assert "stack expects each tensor to be equal size" in str(error), error
else:
    raise AssertionError("rows of two shapes are no batch")
whole = sent({"rows": [batch[0], None, batch[1]], "several": ([batch[2]], "x")}, device)
check("tensors within a value go to a GPU", [[each.is_cuda, torch.equal(each.cpu(), batch[place])]
    for place, each in enumerate((whole["rows"][0], whole["rows"][2], whole["several"][0][0]))], [[True, True]] * 3)
check("and what is none stays", (whole["rows"][1], whole["several"][1]), (None, "x"))
gpu_copies.MOST_STAGED = batch.nbytes - 1
[much] = counted("a batch that would pin much memory is not staged", lambda: staged([batch], device),
    to_card_pageable=1, default_to_card=1, stream_syncs=1)
check("and goes all the same", torch.equal(much.cpu(), batch), True)
value = {"rows": [batch]}
check("a value with so much is left to its user",
    counted("without a copy", lambda: sent(value, device))["rows"][0] is batch, True)
rows = counted("rows of several shapes go in one copy for each dtype",
    lambda: to_device([batch[0], batch[:2], batch[0].long()], device), to_card_pinned=2)
check("and are in their shapes there", [[*row.shape, row.is_cuda, row.cpu().flatten().tolist()] for row in rows],
    [[4, True, [0, 1, 2, 3]], [2, 4, True, [*range(8)]], [4, True, [0, 1, 2, 3]]])
back = counted("tensors come back together, and are waited for once", lambda: fetched(list(there)),
    from_card_pinned=1, event_syncs=1)
check("with their numbers", [each.tolist() for each in back], batch.tolist())
several = [Box(there[0], torch.tensor(7).cuda()), {"scores": [there[1, :2], there[2]], "name": "x"}, 3]
[box, scores, three] = counted("several dtypes in a copy each, and one wait", lambda: fetched(several),
    from_card_pinned=2, event_syncs=1)
tensors = [box.corners, *scores["scores"]]  # joined by a kernel, which does nothing here
check("in the same structure", [type(box) is Box, [[*each.shape] for each in tensors],
    [each.is_cuda for each in tensors], box.label.item(), scores["name"], three],
    [True, [[4], [2], [4]], [False] * 3, 7, "x", 3])
"""


@pytest.mark.heavy
def test_rows_and_values_cross_the_bus_together_whatever_their_shapes_and_types(tmp_path: Path) -> None:
    cards_or_skip(tmp_path).run(PROGRAM)
