"""Batches for a model whose file takes only some."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.support.batches import batches_of, batches_of_program, run_within
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.batches import ANY, FileBatches


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def exported(rows: int, **dims: Any) -> torch.export.ExportedProgram:
    shapes = ({0: torch.export.Dim("rows", **dims)},) if dims else None
    return torch.export.export(Double(), (torch.ones(rows, 2),), dynamic_shapes=shapes)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(lambda: exported(1), FileBatches(1, 1), id="torch.export's default is fixed"),
        pytest.param(lambda: exported(4), FileBatches(4, 4), id="of several rows, too"),
        pytest.param(lambda: exported(4, min=1, max=16), FileBatches(1, 16), id="a range has its end"),
        pytest.param(lambda: exported(4, min=3, max=16), FileBatches(3, 16), id="and its begin"),
        pytest.param(lambda: exported(4, min=1), ANY, id="a dynamic one takes any number"),
    ],
)
def test_an_exported_program_tells_its_batches(
    program: Callable[[], torch.export.ExportedProgram], expected: FileBatches
) -> None:
    assert batches_of_program(program()) == expected
    assert batches_of(Double()) is ANY, "of no file"


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4, 7])
def test_a_saved_program_of_four_rows_takes_any_number(model_dir: Any, rows: int) -> None:
    torch.export.save(exported(4), model_dir / "net.pt2")
    handler = BaseHandler()
    handler.initialize(context_of(model_dir, {"serializedFile": "net.pt2"}))
    data = torch.arange(2.0 * rows).reshape(rows, 2)

    assert torch.equal(handler.inference(data).cpu(), 2 * data)


@pytest.mark.slow
def test_the_worker_tells_what_its_file_takes(model_dir: Any) -> None:
    torch.export.save(exported(1), model_dir / "net.pt2")
    manifest = {"model": {"serializedFile": "net.pt2"}}

    runtime = Runtime.load(wire.Load("net", "1.0", str(model_dir), "base_handler", manifest, batch_size=8, threads=1))

    assert runtime.most_rows == 1
    assert [each[:45] for each in runtime.notes] == ["`net.pt2` takes batches of exactly 1, as it w"]


def test_the_parts_are_as_large_as_the_file_takes_and_padding_has_no_answer() -> None:
    sizes = []

    def run(data: torch.Tensor) -> Any:
        sizes.append(len(data))
        return {"y": data, "pair": (data, [data]), "scale": torch.tensor(2.0), "name": "n"}

    data = torch.arange(7.0)
    made = run_within(FileBatches(3, 3), run, data)

    assert sizes == [3, 3, 3]
    assert torch.equal(made["y"], data) and torch.equal(made["pair"][0], data) and torch.equal(made["pair"][1][0], data)
    assert (made["scale"].item(), made["name"]) == (2.0, "n")


@pytest.mark.parametrize(
    ("takes", "sentence"),
    [
        (FileBatches(1, 1), "`net.onnx` takes batches of exactly 1, as it was exported: no larger ones are made. Ex"),
        (FileBatches(4, 4), "exactly 4, as it was exported: no larger ones are made, and smaller ones are padded."),
        (FileBatches(1, 16), "takes batches of at most 16, as it was exported"),
        (FileBatches(3, 0), "takes batches of at least 3: smaller ones are padded"),
    ],
)
def test_the_author_is_told(takes: FileBatches, sentence: str) -> None:
    assert sentence in takes.note("net.onnx")
    assert ANY.note("net.onnx") == ""
