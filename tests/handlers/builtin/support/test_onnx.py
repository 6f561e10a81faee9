"""Models in ONNX files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of
from tests.kit.null_gpu.cards import cards_or_skip
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.support.onnx import load_session
from tsctl.handlers.sdk.batches import FileBatches
from tsctl.handlers.sdk.errors import HandlerError

pytestmark = pytest.mark.slow  # onnxruntime takes its time to import


def write_model(
    path: Path, *, inputs: Sequence[str] = ("a", "b"), outputs: Sequence[str] = ("sum",), rows: int | str = "rows"
) -> None:
    """Write a model of so many rows: `sum` is that of its first and its last input, `same` is `a`."""
    onnx = pytest.importorskip("onnx")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    nodes = {
        "sum": helper.make_node("Add", [inputs[0], inputs[-1]], ["sum"]),
        "same": helper.make_node("Identity", ["a"], ["same"]),
    }
    given, made = (
        [helper.make_tensor_value_info(name, floats, [rows, 2]) for name in names] for names in (inputs, outputs)
    )
    graph = helper.make_graph([nodes[name] for name in outputs], "adder", given, made)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_doubling(path: Path, rows: int | str) -> None:
    write_model(path, inputs=["a"], rows=rows)


@pytest.fixture
def archive(model_dir: Path) -> Path:
    pytest.importorskip("onnxruntime")
    write_model(model_dir / "net.onnx")
    return model_dir


def load(archive: Path) -> BaseHandler:
    handler = BaseHandler()
    handler.initialize(context_of(archive, {"serializedFile": "net.onnx"}))
    return handler


def test_the_model_is_a_session_as_in_torchserve(archive: Path) -> None:
    handler = load(archive)

    assert [each.name for each in handler.model.get_inputs()] == ["a", "b"]
    assert handler.model.get_providers()[-1] == "CPUExecutionProvider"
    assert handler.model.get_session_options().intra_op_num_threads == torch.get_num_threads()


def test_the_default_inference_runs_it(archive: Path) -> None:
    result = load(archive).inference(torch.ones(3, 2), torch.full((3, 2), 2.0))

    assert torch.equal(result, torch.full((3, 2), 3.0))


def test_an_onnxruntime_without_cuda_runs_the_model_on_the_cpu_of_a_machine_with_a_gpu(
    archive: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])

    session = load_session(archive / "net.onnx", torch.device("cuda:0"))

    assert session.get_providers() == ["CPUExecutionProvider"]
    (said,) = caplog.messages
    assert said.startswith("net.onnx runs on the CPU: onnxruntime ")
    assert said.endswith(" has no CUDAExecutionProvider, which the package onnxruntime-gpu has")


def test_several_outputs_are_a_list(archive: Path) -> None:
    write_model(archive / "net.onnx", outputs=["sum", "same"])

    results = load(archive).inference(torch.ones(1, 2), torch.ones(1, 2))

    assert [each.tolist() for each in results] == [[[2, 2]], [[1, 1]]]


def test_a_file_that_is_no_onnx_is_refused(archive: Path) -> None:
    (archive / "net.onnx").write_bytes(b"not a model")

    with pytest.raises(HandlerError, match=r"`net\.onnx` is not an ONNX model that onnxruntime can run"):
        load(archive)


def test_without_onnxruntime_a_sentence_says_what_to_install(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent: Any = None
    monkeypatch.setitem(sys.modules, "onnxruntime", absent)

    with pytest.raises(HandlerError, match=r"`net\.onnx` is an ONNX model, and needs onnxruntime: pip install"):
        load(archive)


@pytest.mark.parametrize("fixed", [1, 4])
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_a_batch_that_is_fixed_in_the_file_takes_any_number_of_rows(archive: Path, fixed: int, rows: int) -> None:
    write_doubling(archive / "net.onnx", fixed)
    handler = load(archive)
    data = torch.arange(2.0 * rows).reshape(rows, 2)

    assert handler.file_batches == FileBatches(fixed, fixed)
    assert torch.equal(handler.inference(data), 2 * data)


def test_a_batch_that_is_named_in_the_file_has_no_limit(archive: Path) -> None:
    write_doubling(archive / "net.onnx", "rows")

    assert load(archive).file_batches == FileBatches()


PROGRAM = """
import json, os, sys
from pathlib import Path
import torch
from tests.handlers.builtin.support.test_onnx import write_doubling
from tests.handlers.samples import row
from tests.kit.null_gpu.cards import Delta, OnCards
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.loader import EntryPoint

write_doubling(Path(sys.argv[1], "net.onnx"), "rows")
context = Context("net", sys.argv[1], {"model": {"serializedFile": "net.onnx"}}, batch_size=2, gpu=0)

class Images(VisionHandler):
    image_processing = None

for kind in (BaseHandler, Images):
    handler = kind()
    handler.initialize(context)
    here = OnCards(Path(os.environ["NULL_CUDA_FOLDER"], str(os.getpid())))
    runtime = Runtime(EntryPoint(handler, handler.handle), context)
    with Delta(here) as done:
        answers = runtime.run([row(b"[1.5, 2.0]", "application/json"), row(b"[3.0, 4.0]", "application/json")])
    crossed = done["to_card_bytes"] + done["from_card_bytes"]
    print(json.dumps([[json.loads(each.body) for each in answers], crossed]))
"""


@pytest.mark.heavy
def test_a_batch_does_not_go_to_a_gpu_and_back_before_the_session_takes_it_there(archive: Path, tmp_path: Path) -> None:
    done = cards_or_skip(tmp_path).run(PROGRAM, str(archive))

    assert [json.loads(line) for line in done.splitlines()] == [[[[3.0, 4.0], [6.0, 8.0]], 0]] * 2
