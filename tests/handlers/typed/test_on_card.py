"""A typed handler on a null card (tests/kit/null_gpu): where its `device` is a GPU, so are the tensors of a batch."""

from pathlib import Path

import pytest

from tests.kit.null_gpu.cards import cards_or_skip

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

PROGRAM = """
import json, os
from pathlib import Path
import torch
from tests.handlers.samples import row
from tests.kit.null_gpu.cards import Delta, OnCards
from tsctl.handlers.requests import gpu_copies
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.sdk.streaming import send_intermediate_predict_response
from tsctl.handlers.typed.entry import typed_entry

torch.ones(1, device="cuda")
here = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid())))
NAMES = ("to_card_pinned", "to_card_pageable", "default_to_card", "from_card_pinned", "from_card_pageable",
    "launches", "stream_syncs", "device_syncs", "event_syncs")

ONCE = dict.fromkeys(NAMES, 0) | {"to_card_pinned": 1, "from_card_pinned": 1, "event_syncs": 1}
NEVER = dict.fromkeys(NAMES, 0)

def check(claim, handler, *bodies, answers, did, pieces=[], gpu=0):
    typed = hasattr(handler, "predict")
    entry = typed_entry(handler.predict, handler) if typed else EntryPoint(handler, handler.handle)
    context = Context("model", "/nowhere", {}, batch_size=4, gpu=gpu)
    entry.initialize(context)
    runtime, sent = Runtime(entry, context), []
    rows = [row(body.encode(), "application/json", request_id=str(place)) for place, body in enumerate(bodies)]
    runtime.run(rows)  # a first one allocates
    with Delta(here) as done:
        given = runtime.run(rows, sent.extend)
    found = ([json.loads(each.body or "null") if each.status == 200 else each.body.decode() for each in given],
        {name: done[name] for name in did}, [json.loads(each.body) for _, each in sent])
    assert found == (answers, did, pieces), f"{claim}: {found}"

def there(*values):
    return [["cuda", value] for value in values]

def main_memory(*values):
    return [["cpu", value] for value in values]

def told(tensor):
    return None if tensor is None else [tensor.device.type, tensor.tolist()]

class One:
    def load(self, device):
        self.device = device
    def predict(self, rows: list[torch.Tensor]) -> list[list]:
        return [told(row) for row in rows]

class Back(One):
    def predict(self, rows: list[torch.Tensor]) -> list[list]:
        return [[row.device.type, row] for row in rows]

class Several(One):
    def predict(self, rows: list[list[torch.Tensor]]) -> list[list]:
        return [[told(each) for each in row] for row in rows]

class Two(One):
    def predict(self, a: list[torch.Tensor], b: list[torch.Tensor | None]) -> list[list]:
        return [[told(a), told(b)] for a, b in zip(a, b)]

class Single(One):
    def predict(self, row: torch.Tensor, other: torch.Tensor | None = None) -> list:
        return [row.device.type, row]

class Waits(One):
    async def predict(self, row: torch.Tensor) -> list:
        return [row.device.type, row]

class Told(One):
    def predict(self, row: torch.Tensor) -> list:
        return told(row)

class ToldLater(One):
    async def predict(self, row: torch.Tensor) -> list:
        return told(row)

class ToldInPieces(One):
    def predict(self, row: torch.Tensor):
        yield told(row)

class SendsPieces:
    def initialize(self, context):
        pass
    def handle(self, data, context):
        pieces = [{"is": each} for each in torch.arange(float(len(data))).to("cuda").split(1)]
        send_intermediate_predict_response(pieces, context.request_ids, "", 200, context)
        return [b""] * len(data)

class Streams(One):
    def predict(self, rows: list[torch.Tensor]):
        yield rows
        yield [None] * len(rows)

class Named:
    def __init__(self, device):
        self.device = device
    predict = Back.predict

check("rows go to the card in one pinned copy, and come back in one, which is waited for once",
    Back(), "[1.5, 2]", "[3.5, 4]", "[5.5, 6]", answers=there([1.5, 2], [3.5, 4], [5.5, 6]), did=ONCE)
check("rows of other shapes and types are themselves there: a copy for each type",
    One(), "[1.5]", "[[2.5, 3.5]]", "[4]", "[]",
    answers=there([1.5], [[2.5, 3.5]], [4], []), did={"to_card_pinned": 2, "to_card_pageable": 0})
check("so are several of a row, together", Several(), "[[1.5], [2.5]]", "[[3.5], [4.5]]",
    answers=[there([1.5], [2.5]), there([3.5], [4.5])], did={"to_card_pinned": 1})
check("and those of all parameters", Two(), '{"a": [1.5], "b": [2.5]}', '{"a": [3.5], "b": null}',
    answers=[there([1.5], [2.5]), [["cuda", [3.5]], None]], did={"to_card_pinned": 1})
check("those of a function that takes one row go and come in one copy, too",
    Single(), "[1.5, 2]", "[3.5, 4]", '{"row": [5.5, 6]}', answers=there([1.5, 2], [3.5, 4], [5.5, 6]), did=ONCE)
check("and those of a coroutine", Waits(), "[1.5]", "[2.5]", answers=there([1.5], [2.5]), did=ONCE)
check("a device may be torch's own", Named(torch.device("cuda", 0)), "[1.5]", answers=there([1.5]), did=ONCE)
check("the pieces of all rows come back in one copy", Streams(), "[1.5]", "[2.5]", "[3.5]",
    answers=[None] * 3, did=ONCE, pieces=[[1.5], [2.5], [3.5]])
check("so do TorchServe's", SendsPieces(), "[]", "[]", "[]", answers=[None] * 3,
    did={"from_card_pinned": 1, "from_card_pageable": 0}, pieces=[{"is": [0]}, {"is": [1]}, {"is": [2]}])
for stays in (None, "cpu", torch.device("cpu"), "microphone", 3):
    check(f"a handler whose device is {stays!r} has its tensors in main memory",
        Named(stays), "[1.5]", "[2.5]", answers=main_memory([1.5], [2.5]), did=NEVER)
check("so has one in a worker without a GPU", Named("cuda:0"), "[1.5]", answers=main_memory([1.5]), did=NEVER, gpu=None)
gpu_copies.MOST_STAGED = 16  # bytes: two rows of two numbers
check("as much as is staged goes", Back(), "[1.5, 2]", "[3.5, 4]", answers=there([1.5, 2], [3.5, 4]), did=ONCE)
check("a larger batch stays, where the handler may refuse rows or move one by one", Back(), "[1.5, 2]", "[3.5, 4]",
    "[5.5]", answers=main_memory([1.5, 2], [3.5, 4], [5.5]), did=NEVER)
check("one large row stays", Back(), "[1.5, 2, 3, 4, 5]", answers=main_memory([1.5, 2, 3, 4, 5]), did=NEVER)
large = ("[1.5, 2]", "[3.5, 4]", "[5.5]", "[1, 2, 3]")
stay = main_memory([1.5, 2], [3.5, 4], [5.5], [1, 2, 3])
check("rows that are large together go one by one where their calls run in turn",
    Told(), *large, answers=there([1.5, 2], [3.5, 4], [5.5]) + stay[3:], did={"to_card_pinned": 3})
check("they stay where their calls are under way together", ToldLater(), *large, answers=stay, did=NEVER)
check("and where these answer in pieces", ToldInPieces(), *large, answers=[None] * 4, did=NEVER, pieces=stay)
"""


def test_tensors_of_a_batch_are_on_the_card_that_the_handler_names_and_cross_the_bus_together(tmp_path: Path) -> None:
    cards_or_skip(tmp_path).run(PROGRAM)
