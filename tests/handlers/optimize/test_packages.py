"""Models as libraries: which are fit, which inputs a library serves, and where they are found again."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.optimize.packages import keeping
from tsctl.handlers.optimize.packages.package import Description, Graph, Packages
from tsctl.handlers.optimize.packages.recording import NotExportable, record


class Asked:
    """A handler that calls its model with these arguments."""

    def __init__(self, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        self.model: Any = model.eval()
        self._args, self._kwargs = args, kwargs

    def run(self) -> Any:
        with torch.inference_mode():
            return self.model(*self._args, **self._kwargs)


class Plus(nn.Module):
    def forward(self, first: torch.Tensor, *, second: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": first + second}


def test_a_call_is_recorded_with_how_its_tensors_are_nested() -> None:
    handler = Asked(Plus(), torch.ones(2, 3), second=torch.ones(3))
    model = handler.model

    call = record(handler, handler.run)

    assert handler.model is model
    assert [tuple(each.shape) for each in call.inputs] == [(2, 3), (3,)]
    assert pytree.tree_unflatten(list(call.outputs), call.output_spec)["sum"].sum() == 12
    assert not any(each.is_inference() for each in call.inputs)


class Counting(nn.Module):
    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return tensor * self.calls


class Noise(nn.Module):
    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor + torch.rand(1)


class Number(nn.Module):
    def forward(self, tensor: torch.Tensor) -> Any:
        return tensor, tensor.shape[0]


def twice(handler: Asked) -> None:
    handler.run()
    handler.run()


@pytest.mark.parametrize(
    ("make", "run", "reason"),
    [
        pytest.param(lambda: Asked(Counting(), torch.ones(2)), Asked.run, "changes its weights", id="a buffer"),
        pytest.param(lambda: Asked(Noise(), torch.ones(2)), Asked.run, "draws random numbers", id="random numbers"),
        pytest.param(lambda: Asked(Number(), torch.ones(2)), Asked.run, "returns int", id="a number is returned"),
        pytest.param(lambda: Asked(nn.Identity(), torch.ones(2).numpy()), Asked.run, "takes ndarray", id="an array"),
        pytest.param(lambda: Asked(nn.Identity(), torch.ones(2)), twice, "2 times", id="two calls"),
        pytest.param(lambda: Asked(nn.Identity(), torch.ones(2)), lambda handler: None, "0 times", id="no call"),
        pytest.param(lambda: Asked(nn.Identity(), torch.ones(2, 3).T), Asked.run, "not contiguous", id="a view"),
    ],
)
def test_a_model_is_unfit(make: Callable[[], Asked], run: Callable[[Asked], object], reason: str) -> None:
    handler = make()

    with pytest.raises(NotExportable, match=reason):
        record(handler, lambda: run(handler))


@pytest.mark.parametrize(
    ("batched", "shapes", "fits"),
    [
        pytest.param([], [[8, 3], [5]], True, id="the very shapes"),
        pytest.param([], [[7, 3], [5]], False, id="another batch"),
        pytest.param([True, False], [[2, 3], [5]], True, id="any batch from two on"),
        pytest.param([True, False], [[100, 3], [5]], True, id="larger than any seen"),
        pytest.param([True, False], [[1, 3], [5]], False, id="not a batch of one"),
        pytest.param([True, False], [[2, 4], [5]], False, id="another width"),
        pytest.param([True, False], [[2, 3], [6]], False, id="another second input"),
        pytest.param([True, False], [[2, 3, 1], [5]], False, id="another rank"),
        pytest.param([True, True], [[4, 3], [4]], True, id="both have the batch"),
        pytest.param([True, True], [[4, 3], [3]], False, id="of one size"),
    ],
)
def test_a_graph_serves_inputs_of_its_shapes(batched: list[bool], shapes: list[list[int]], fits: bool) -> None:
    assert Graph([[8, 3], [5]], "", batched).fits(shapes) is fits


class Runner:
    """Stands for a library that doubles its inputs."""

    def __init__(self, path: str, number: int) -> None:
        self.name = Path(path).stem
        self.held: dict[str, torch.Tensor] = {}

    def update_constant_buffer(self, held: dict[str, torch.Tensor], *_: bool) -> None:
        self.held = held

    def run(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        assert all(each.is_contiguous() for each in inputs)
        return [inputs[0] * 2]


def description() -> Description:
    given = pytree.treespec_dumps(pytree.tree_structure(((torch.ones(1),), {})))
    output = pytree.treespec_dumps(pytree.tree_structure([torch.ones(1)]))
    graphs = {
        "full": Graph([[4, 2]], output),
        "one": Graph([[1, 2]], output, [], {"inner": "weight"}),
        "rest": Graph([[3, 2]], output, [True], {"inner": "weight"}),
    }
    return Description(given, ["float32"], graphs, 0.25)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Packages:
    monkeypatch.setattr(torch._C._aoti, "AOTIModelContainerRunnerCpu", Runner)
    return Packages(tmp_path, description(), nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("rows", "library"), [(1, "one"), (2, "rest"), (3, "rest"), (4, "full"), (9, "rest")]
)  # fmt: skip
def test_each_batch_has_its_library(rows: int, library: str, packages: Packages) -> None:
    found = packages.graph_for([torch.ones(rows, 2)])

    assert found is not None
    assert (found[0].name, list(found[0].held)) == (library, [] if library == "full" else ["inner"])


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        pytest.param((torch.ones(4, 3),), {}, id="another shape"),
        pytest.param((torch.ones(4, 2, dtype=torch.float64),), {}, id="another dtype"),
        pytest.param((), {"input": torch.ones(4, 2)}, id="by name"),
        pytest.param((torch.ones(4, 2), torch.ones(4, 2)), {}, id="one more"),
        pytest.param(([[1.0, 2.0]],), {}, id="no tensor"),
        pytest.param((nn.Parameter(torch.ones(4, 2)),), {}, id="a parameter"),
        pytest.param((torch.ones(4, 2, requires_grad=True),), {}, id="gradients are wanted"),
    ],
)
def test_other_inputs_are_left_to_torch_compile(args: Any, kwargs: Any, packages: Packages) -> None:
    assert packages.run(args, kwargs) is None


def test_the_output_is_nested_as_the_models(packages: Packages) -> None:
    view = torch.ones(2, 4).T

    output = packages.run((view,), {})

    assert output is not None
    assert [each.tolist() for each in output[0]] == [[[2.0, 2.0]] * 4]


class Mine(BaseHandler):
    def initialize(self, context: Any) -> None:
        """Load whatever there is."""


class Net(nn.Module):
    """A model whose class is in a file of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BaseHandler:
    monkeypatch.setenv(keeping.VARIABLE, str(tmp_path / "compiled"))
    handler = BaseHandler()
    handler.model = Net()
    return handler


def folder(handler: BaseHandler, model_dir: Path, done: tuple[str, ...] = ("fold",), batch_size: int = 4) -> Path:
    found = keeping.folder_for(handler, model_dir, done, batch_size)
    assert found is not None
    return found


def test_libraries_are_found_by_what_they_were_made_of(
    handler: BaseHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / ("a" * 64), tmp_path / ("b" * 64)
    own = folder(handler, one)

    assert own == folder(handler, one)
    assert own != folder(handler, other)
    assert own != folder(handler, one, ())
    assert own != folder(handler, one, batch_size=5)
    monkeypatch.delenv(keeping.VARIABLE)
    assert keeping.folder_for(handler, one, (), 1) is None, "without a directory nothing is kept"
    monkeypatch.setenv(keeping.VARIABLE, str(tmp_path / "compiled"))
    monkeypatch.setattr(torch, "__version__", "9.9")
    assert own != folder(handler, one)


def test_a_changed_file_of_the_models_code_is_other_code(
    handler: BaseHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "site" / "library.py"
    module.parent.mkdir()
    module.write_text("from torch import nn\nclass Net(nn.Identity):\n    pass\n")
    monkeypatch.syspath_prepend(str(module.parent))
    import importlib

    handler.model = importlib.import_module("library").Net()
    own = folder(handler, tmp_path / ("a" * 64))
    os.utime(module, (1, 1))

    assert folder(handler, tmp_path / ("a" * 64)) != own
    monkeypatch.delitem(__import__("sys").modules, "library")


def test_the_weights_count_where_they_may_come_from_anywhere(handler: BaseHandler, tmp_path: Path) -> None:
    mine = Mine()
    mine.model = handler.model
    ours, theirs = folder(handler, tmp_path / ("a" * 64)), folder(mine, tmp_path / ("a" * 64))

    with torch.no_grad():
        handler.model.linear.bias[1] += 1

    assert folder(handler, tmp_path / ("a" * 64)) == ours
    assert folder(mine, tmp_path / ("a" * 64)) != theirs


def test_libraries_are_kept_whole_and_found_and_long_unused_ones_go(packages: Packages, tmp_path: Path) -> None:
    old, kept = tmp_path / "packages" / "old", tmp_path / "packages" / "new"
    old.mkdir(parents=True)

    def fail(draft: Path) -> Any:
        (draft / "full.so").write_bytes(b"half")
        raise NotExportable("no")

    with pytest.raises(NotExportable):
        keeping.keep(kept, fail)
    assert [*(tmp_path / "packages").iterdir()] == [old], "what cannot be made leaves nothing"
    os.utime(old, (time.time() - 2 * keeping.UNUSED,) * 2)

    assert keeping.keep(kept, lambda draft: (description(), packages)) is packages

    found = keeping.find(kept, nn.Linear(2, 2), Packages)
    assert found is not None and found.drift == 0.25
    assert [each.name for each in kept.parent.iterdir()] == ["new"]


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"input_spec": "[", "dtypes": [], "graphs": {}}'])
def test_damaged_libraries_are_as_if_there_were_none(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "description.json").write_bytes(content)

    assert keeping.find(tmp_path, nn.Identity(), Packages) is None
