"""The base of every handler: what it loads, and the order of its stages."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.samples import context_of, write
from tsctl.handlers.builtin.base import BaseHandler, is_prepared, payload_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.loader import EntryPoint
from tsctl.handlers.wire import STAGE_TIME, STAGES

NET = """
    import torch
    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2
"""


@pytest.fixture
def context(model_dir: Path) -> Context:
    """The context of an archive with a model that doubles."""
    write(model_dir / "net.py", NET)
    return context_of(model_dir, {"modelFile": "net.py"}, {"minWorkers": 1})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param({"data": 1, "body": 2}, 1, id="data comes first"),
        pytest.param({"body": 2}, 2, id="else body"),
        pytest.param({"data": None, "body": 2}, 2, id="also when data is none"),
        pytest.param({"data": 0, "body": 2}, 0, id="a falsy value is one"),
        pytest.param({"else": 1}, None, id="neither"),
        pytest.param({"body": {"data": 1}}, 1, id="of an object, its member data"),
        pytest.param({"body": {"body": 1}}, 1, id="or body"),
        pytest.param({"body": {"else": 1}}, {"else": 1}, id="any other object is the payload"),
        pytest.param([1, 2], [1, 2], id="a row that is no mapping is the payload"),
    ],
)
def test_payload_of(row: object, expected: object) -> None:
    assert payload_of(row) == expected


def test_before_initialize_nothing_is_loaded() -> None:
    handler = BaseHandler()

    assert (handler.model, handler.mapping, handler.context, handler.initialized) == (None, None, None, False)
    assert (handler.explain, handler.target) == (False, 0)


def test_initialize_sets_what_torchserves_handlers_use(context: Context, model_dir: Path) -> None:
    (model_dir / "index_to_name.json").write_text(json.dumps({"0": "cat"}))
    handler = BaseHandler()

    handler.initialize(context)

    assert handler.initialized
    assert handler.context is context
    assert handler.device == DEVICE
    assert handler.map_location == DEVICE.type
    assert handler.mapping == {"0": "cat"}
    assert handler.manifest == {"model": {"modelFile": "net.py"}}
    assert handler.model_yaml_config == {"minWorkers": 1}
    assert handler.model_pt_path is None
    assert type(handler.model).__name__ == "Net"
    torch.save({}, model_dir / "weights.pt")
    context.manifest["model"]["serializedFile"] = "out/weights.pt"
    handler.initialize(context)
    assert handler.model_pt_path == str(model_dir / "weights.pt")


class Loads(BaseHandler):
    """Loads its model in ways of its own, as TorchServe's handlers may, and has further methods for itself."""

    def _load_pickled_model(self, model_dir: str, model_file: str, model_pt_path: str | None) -> Any:
        model = super()._load_pickled_model(model_dir, model_file, None)
        assert model_pt_path is not None
        model.own = torch.load(model_pt_path)["state_dict"]["weight"].to(self.device)
        return model

    def _load_torchscript_model(self, model_pt_path: str) -> Any:
        return torch.nn.Sequential(torch.nn.Identity(), torch.nn.Dropout()).requires_grad_(False).to(self.device)

    def prepare(self) -> None:  # type: ignore[override]
        raise AssertionError("no method of TorchServe's")

    _load_model = _predict = _run = prepare


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param({"modelFile": "net.py", "serializedFile": "weights.pt"}, 2.0, id="from a class and weights"),
        pytest.param({"serializedFile": "weights.pt"}, 1.0, id="from a .pt file"),
    ],
)
def test_a_handler_may_load_its_model_in_a_way_of_its_own(
    context: Context, model_dir: Path, manifest: dict[str, str], expected: float
) -> None:
    torch.save({"state_dict": {"weight": torch.ones(1)}}, model_dir / "weights.pt")
    handler = Loads()
    context.manifest["model"] = manifest
    handler.initialize(context)
    entry = EntryPoint(handler, handler.handle)

    answers = handler.handle([{"body": [1.0]}], context)

    assert answers == [[expected]]
    assert not handler.model.training
    assert not entry.checks, "a method `prepare` of a user's is not ours"
    assert hasattr(handler.model, "own") == ("modelFile" in manifest)
    assert handler.load_again is not None
    assert type(handler.load_again()) is type(handler.model), "another copy is loaded so, too"


@pytest.mark.parametrize("device", [str(DEVICE), DEVICE])
def test_a_handler_without_our_init_and_initialize_may_call_what_loads_models(
    context: Context, model_dir: Path, device: str | torch.device
) -> None:
    class Own(BaseHandler):
        def __init__(self) -> None:
            self.device = device  # type: ignore[assignment]

        def initialize(self, context: Context) -> None:
            made = self._load_pickled_model(str(model_dir), "net.py", None).to(self.device)
            torch.jit.script(made).save(str(model_dir / "scripted.pt"))
            self.model = self._load_torchscript_model(str(model_dir / "scripted.pt"))

    handler = Own()
    handler.initialize(context)

    assert handler.handle([{"body": [1.0]}], context) == [[2.0]]


def test_a_batch_is_one_tensor_and_one_list(context: Context) -> None:
    handler = BaseHandler()
    handler.initialize(context)

    answers = handler.handle([{"data": [1.0, 2.0]}, {"body": [3.0, 4.0]}], context)

    assert answers == [[2.0, 4.0], [6.0, 8.0]]


def test_the_model_runs_without_recording_gradients(context: Context) -> None:
    handler = BaseHandler()
    handler.initialize(context)

    output = handler.inference(torch.ones(1, requires_grad=True))

    assert output.is_inference()
    assert not output.requires_grad


def test_inference_passes_further_arguments_on() -> None:
    handler = BaseHandler()
    handler.model = lambda data, more, scale: data * scale + more

    assert handler.inference(torch.ones(1), 1, scale=3).item() == 4


def test_stages_run_in_order_and_each_may_be_replaced(context: Context) -> None:
    class Replaced(BaseHandler):
        def preprocess(self, data: list[Any]) -> Any:
            return [*data, "preprocess"]

        def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
            return [*data, "inference"]

        def postprocess(self, data: Any) -> list[Any]:
            return [*data, "postprocess"]

    handler = Replaced()

    answers = handler.handle(["row"], context)

    assert answers == ["row", "preprocess", "inference", "postprocess"]
    assert handler.context is context


def test_the_times_of_the_stages_are_reported_for_each_batch(context: Context) -> None:
    handler = BaseHandler()
    handler.context, handler.model = context, torch.nn.Identity()
    for _ in range(2):
        handler.handle([{"data": [1.0]}], context)

    told = {
        each.labels: sum(each.buckets) for each in context.metrics.tally.take_measurements() if each.name == STAGE_TIME
    }

    assert told == {(("stage", stage),): 2 for stage in STAGES}


def test_prepare_finds_the_rows_that_are_no_array() -> None:
    rows: list[Any] = [{"body": [1, 2]}, {"body": "text"}, {"body": None}, {}, {"data": 3}, {"data": [1.0, 10**400]}]

    unreadable = BaseHandler().prepare(rows)

    assert list(unreadable) == [1, 2, 3, 5]
    assert str(unreadable[1]).startswith("The request is not an array of numbers: ")
    assert str(unreadable[3]).startswith("The request has no body: send the numbers in JSON")
    reading = type("Reading", (BaseHandler,), {"preprocess": lambda self, data: data})
    assert reading().prepare([{"body": "text"}]) == {}, "whose own way is left alone"


def test_rows_of_one_shape_are_read_by_one_call_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Any] = [{"body": [1, number]} for number in range(8)]
    read = Mock(wraps=torch.as_tensor)
    monkeypatch.setattr(torch, "as_tensor", read)

    assert BaseHandler().prepare(rows) == {}

    read.assert_called_once()
    assert [row.prepared.tolist() for row in rows] == [[1, number] for number in range(8)]
    assert rows[0].prepared.dtype is torch.int64


@pytest.mark.parametrize(
    "bodies",
    [
        pytest.param([[], [1, 2]], id="an empty one, to whose length torch would cut the others"),
        pytest.param([[1, 2], [0.5, 2]], id="floats beside whole numbers, which an embedding takes"),
        pytest.param([[True, False], [1, 2]], id="whole numbers beside truth values"),
        pytest.param([[2**63], [0.5]], id="a whole number that is none of torch's"),
    ],
)
def test_a_row_is_read_beside_others_as_it_is_alone(bodies: list[Any]) -> None:
    alone: list[list[Any]] = [[{"body": body}] for body in bodies]
    together: list[Any] = [{"body": body} for body in bodies]
    refused = [index for index, rows in enumerate(alone) if BaseHandler().prepare(rows)]

    assert [*BaseHandler().prepare(together)] == refused

    for [row], beside in zip(alone, together, strict=True):
        assert is_prepared(beside) == is_prepared(row)
        if is_prepared(row):
            assert beside.prepared.dtype is row.prepared.dtype and torch.equal(beside.prepared, row.prepared)
