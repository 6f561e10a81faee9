"""A typed handler on a null card (tests/kit/null_gpu): where its `device` is a GPU, so are the tensors of a batch."""

import json
from typing import Any

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
here, found = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid()))), {}
NAMES = ("to_card_pinned", "to_card_pageable", "default_to_card", "from_card_pinned", "from_card_pageable",
    "launches", "stream_syncs", "device_syncs", "event_syncs")

def ask(name, handler, *bodies, gpu=0):
    typed = hasattr(handler, "predict")
    entry = typed_entry(handler.predict, handler) if typed else EntryPoint(handler, handler.handle)
    context = Context("model", "/nowhere", {}, batch_size=4, gpu_id=gpu)
    entry.initialize(context)
    runtime = Runtime(entry, context)
    rows = [row(body.encode(), "application/json", request_id=str(place)) for place, body in enumerate(bodies)]
    runtime.run(rows)  # a first one allocates
    pieces = []
    with Delta(here) as done:
        answers = runtime.run(rows, pieces.extend)
    found[name] = {"did": {each: done[each] for each in NAMES if done[each]},
        "pieces": [json.loads(each.body) for _, each in pieces],
        "answers": [json.loads(each.body or "null") if each.status == 200 else each.body.decode() for each in answers]}

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

ask("rows of one shape", Back(), "[1.5, 2]", "[3.5, 4]", "[5.5, 6]")
ask("rows of several shapes and types", One(), "[1.5]", "[[2.5, 3.5]]", "[4]", "[]")
ask("several tensors in each row", Several(), "[[1.5], [2.5]]", "[[3.5], [4.5]]")
ask("two parameters", Two(), '{"a": [1.5], "b": [2.5]}', '{"a": [3.5], "b": null}')
ask("a call for each row", Single(), "[1.5, 2]", "[3.5, 4]", '{"row": [5.5, 6]}')
ask("coroutines", Waits(), "[1.5]", "[2.5]")
ask("pieces of TorchServe's", SendsPieces(), "[]", "[]", "[]")
ask("pieces", Streams(), "[1.5]", "[2.5]", "[3.5]")
ask("a device of torch", Named(torch.device("cuda", 0)), "[1.5]")
for stays in (None, "cpu", torch.device("cpu"), "microphone", 3):
    ask(f"on {stays!r}", Named(stays), "[1.5]", "[2.5]")
ask("a worker without a GPU", Named("cuda:0"), "[1.5]", gpu=None)
gpu_copies.MOST_STAGED = 16  # bytes: two rows of two numbers
ask("as much as is staged", Back(), "[1.5, 2]", "[3.5, 4]")
ask("more than is staged", Back(), "[1.5, 2]", "[3.5, 4]", "[5.5]")
ask("one large row", Back(), "[1.5, 2, 3, 4, 5]")
for single in (Told(), ToldLater(), ToldInPieces()):
    ask(f"large together: {type(single).__name__}", single, "[1.5, 2]", "[3.5, 4]", "[5.5]", "[1, 2, 3]")
print(json.dumps(found))
"""
ONCE = {"to_card_pinned": 1, "from_card_pinned": 1, "event_syncs": 1}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cards_or_skip(tmp_path_factory.mktemp("null")).run(PROGRAM))
    return found


def there(*values: Any) -> list[Any]:
    return [["cuda", value] for value in values]


def test_rows_go_to_the_card_in_one_pinned_copy_and_come_back_in_one_which_is_waited_for_once(
    seen: dict[str, Any],
) -> None:
    assert seen["rows of one shape"]["did"] == ONCE
    assert seen["rows of one shape"]["answers"] == there([1.5, 2.0], [3.5, 4.0], [5.5, 6.0])


def test_rows_of_other_shapes_and_types_are_themselves_there(seen: dict[str, Any]) -> None:
    assert seen["rows of several shapes and types"]["answers"] == there([1.5], [[2.5, 3.5]], [4], [])
    assert seen["rows of several shapes and types"]["did"]["to_card_pinned"] == 2, "one for each type"
    assert "to_card_pageable" not in seen["rows of several shapes and types"]["did"]


def test_so_are_several_of_a_row_and_those_of_all_parameters_together(seen: dict[str, Any]) -> None:
    assert seen["several tensors in each row"]["answers"] == [there([1.5], [2.5]), there([3.5], [4.5])]
    assert seen["two parameters"]["answers"] == [there([1.5], [2.5]), [["cuda", [3.5]], None]]
    assert [seen[name]["did"]["to_card_pinned"] for name in ("several tensors in each row", "two parameters")] == [1, 1]


@pytest.mark.parametrize(
    ("name", "rows"), [("a call for each row", [[1.5, 2], [3.5, 4], [5.5, 6]]), ("coroutines", [[1.5], [2.5]])]
)
def test_those_of_a_function_that_takes_one_row_go_and_come_in_one_copy_too(
    name: str, rows: list[Any], seen: dict[str, Any]
) -> None:
    assert (seen[name]["did"], seen[name]["answers"]) == (ONCE, there(*rows))


def test_a_device_may_be_torchs_own(seen: dict[str, Any]) -> None:
    assert seen["a device of torch"]["did"] == ONCE
    assert seen["a device of torch"]["answers"] == there([1.5])


def test_the_pieces_of_all_rows_come_back_in_one_copy(seen: dict[str, Any]) -> None:
    assert (seen["pieces"]["did"], seen["pieces"]["pieces"]) == (ONCE, [[1.5], [2.5], [3.5]])
    sent = seen["pieces of TorchServe's"]
    assert sent["pieces"] == [{"is": [0.0]}, {"is": [1.0]}, {"is": [2.0]}]
    assert (sent["did"]["from_card_pinned"], "from_card_pageable" in sent["did"]) == (1, False)


@pytest.mark.parametrize("name", ["on None", "on 'cpu'", "on device(type='cpu')", "on 'microphone'", "on 3"])
def test_a_handler_that_names_no_gpu_has_its_tensors_in_main_memory(name: str, seen: dict[str, Any]) -> None:
    assert (seen[name]["did"], seen[name]["answers"]) == ({}, [["cpu", [1.5]], ["cpu", [2.5]]])


def test_so_has_one_in_a_worker_without_a_gpu(seen: dict[str, Any]) -> None:
    assert seen["a worker without a GPU"]["did"] == {}
    assert seen["a worker without a GPU"]["answers"] == [["cpu", [1.5]]]


def test_a_batch_that_is_large_stays_in_main_memory_where_the_handler_may_refuse_rows_or_move_one_by_one(
    seen: dict[str, Any],
) -> None:
    assert (seen["as much as is staged"]["did"], seen["as much as is staged"]["answers"]) == (
        ONCE, there([1.5, 2.0], [3.5, 4.0])
    )  # fmt: skip
    assert (seen["more than is staged"]["did"], seen["more than is staged"]["answers"]) == (
        {}, [["cpu", [1.5, 2.0]], ["cpu", [3.5, 4.0]], ["cpu", [5.5]]]
    )  # fmt: skip
    assert (seen["one large row"]["did"], seen["one large row"]["answers"]) == ({}, [["cpu", [1.5, 2, 3, 4, 5]]])


def test_rows_that_are_large_together_go_one_by_one_where_their_calls_run_in_turn(seen: dict[str, Any]) -> None:
    of_rows = seen["large together: Told"]

    assert of_rows["answers"] == [*there([1.5, 2.0], [3.5, 4.0], [5.5]), ["cpu", [1, 2, 3]]]
    assert of_rows["did"]["to_card_pinned"] == 3, "one copy for each"


@pytest.mark.parametrize(("name", "where"), [("ToldLater", "answers"), ("ToldInPieces", "pieces")])
def test_they_stay_in_main_memory_where_their_calls_are_under_way_together(
    name: str, where: str, seen: dict[str, Any]
) -> None:
    of_rows = seen[f"large together: {name}"]

    assert of_rows[where] == [["cpu", [1.5, 2.0]], ["cpu", [3.5, 4.0]], ["cpu", [5.5]], ["cpu", [1, 2, 3]]]
    assert of_rows["did"] == {}
