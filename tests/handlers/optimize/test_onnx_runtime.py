"""`onnxruntime`: the model exported, and run by ONNX Runtime with the answers of the module."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.optimize.loading import answer, done, loaded
from tests.handlers.optimize.nets import put_archive
from tests.handlers.samples import write
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.optimize import onnx_runtime
from tsctl.handlers.optimize.onnx_runtime import OnnxModel
from tsctl.handlers.optimize.packages import keeping
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.plain_model import with_plain_model

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytestmark = pytest.mark.skipif(DEVICE.type != "cpu", reason="ONNX Runtime is used on the CPU only")

# Its Python decides by a tensor's values.
DECIDES = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(3, 4)
        def forward(self, images):
            means = images.mean(dim=(2, 3))
            return self.head(means) if means.sum() > 0 else self.head(-means)
"""
# Its Python asks for a shape, and says what it wants: the exporter that records a run warns of that.
ASKS = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(3, 4)
        def forward(self, images):
            if images.shape[2] < 7:
                raise ValueError("too small")
            return self.head(images.mean(dim=(2, 3)))
"""
TWO = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(3, 4)
        def forward(self, rows):
            return {"scores": self.head(rows), "sums": (rows.sum(1), rows * 2)}
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the place of what is exported, outside the model's own."""
    place = tmp_path.parent / f"{tmp_path.name}-compiled"
    monkeypatch.setenv(keeping.VARIABLE, str(place))
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def no_onnxscript(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxscript" else real(name))


def test_batches_of_any_size_have_the_answers_of_the_module(model_dir: Path, entry: dict[str, str]) -> None:
    plain, handler = loaded(model_dir, entry), loaded(model_dir, entry)

    report = done(handler, "onnxruntime")["onnxruntime"]

    assert isinstance(handler.model, OnnxModel)
    assert report.applied and report.drift is not None and report.drift < 1e-5
    assert answer(handler) == pytest.approx(answer(plain), rel=1e-5)
    for rows in (1, 2, 3, 4, 7):
        images = torch.randn(rows, 3, 224, 224)
        torch.testing.assert_close(handler.inference(images), plain.inference(images), rtol=1e-4, atol=1e-5)
    with with_plain_model(handler):  # which explanations run
        assert not isinstance(handler.model, OnnxModel)
    assert isinstance(handler.model, OnnxModel)


def test_inputs_that_were_not_exported_run_in_the_module(model_dir: Path, entry: dict[str, str]) -> None:
    plain, handler = loaded(model_dir, entry), loaded(model_dir, entry)
    done(handler, "none", "onnxruntime")
    smaller, whole = torch.randn(2, 3, 100, 90), torch.randint(0, 255, (2, 3, 224, 224))

    assert torch.equal(handler.inference(smaller), plain.inference(smaller))
    torch.testing.assert_close(handler.inference(whole), plain.inference(whole), rtol=1e-4, atol=1e-4)


def test_the_session_has_the_threads_of_the_worker(
    model_dir: Path, entry: dict[str, str], packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    real = onnx_runtime._open

    def noted(file: Path) -> Any:
        session = real(file)
        opened.append(torch.get_num_threads())
        return session

    monkeypatch.setattr(onnx_runtime, "_open", noted)
    handler = loaded(model_dir, entry)
    done(handler, "onnxruntime")
    opened.clear()
    first = answer(handler)
    torch.set_num_threads(2)
    try:
        more = [answer(handler) for _ in range(2)]
        shutil.rmtree(packages)
    finally:
        torch.set_num_threads(1)

    assert [*more, answer(handler)] == [pytest.approx(first, rel=1e-5)] * 3
    assert opened == [2], "of the one that was removed, the session stays"


def test_what_was_exported_is_found_again_and_a_damaged_file_written_anew(
    model_dir: Path, entry: dict[str, str], packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = loaded(model_dir, entry)
    done(first, "onnxruntime")
    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: pytest.fail("exported again"))

    again = loaded(model_dir, entry)

    assert done(again, "onnxruntime")["onnxruntime"].applied
    assert answer(again) == answer(first)
    monkeypatch.undo()
    monkeypatch.setenv(keeping.VARIABLE, str(packages))
    (kept,) = packages.rglob("model.onnx")
    kept.write_bytes(b"damaged")
    anew = loaded(model_dir, entry)
    assert done(anew, "onnxruntime")["onnxruntime"].applied and isinstance(anew.model, OnnxModel)


def test_weights_are_beside_the_graph_where_sessions_map_them(
    model_dir: Path, entry: dict[str, str], packages: Path
) -> None:
    handler = loaded(model_dir, entry)
    largest = max(each.numel() * each.element_size() for each in handler.model.parameters())

    done(handler, "onnxruntime")

    (graph,) = packages.rglob("model.onnx")
    assert graph.stat().st_size < largest <= (graph.parent / "weights").stat().st_size


@pytest.mark.parametrize("missing", ["onnxruntime", "onnx"])
def test_without_a_package_it_is_refused_with_the_way_to_get_it(
    missing: str, model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else real(name))

    with pytest.raises(HandlerError) as raised:
        done(loaded(model_dir, entry), "onnxruntime")

    assert str(raised.value) == (
        f"`optimize: onnxruntime` cannot be done: the package {missing} is not installed: pip install 'tsctl[onnx]'"
    )


@pytest.mark.parametrize("other", ["bf16", "int8", "compile"])
def test_beside_what_it_replaces_it_is_refused(other: str, model_dir: Path, entry: dict[str, str]) -> None:
    with pytest.raises(HandlerError, match=f"`onnxruntime` replaces what `{other}` makes faster; drop one of them"):
        done(loaded(model_dir, entry), "onnxruntime", other)


def test_on_a_gpu_and_in_bfloat16_it_is_refused() -> None:
    assert "on the CPU only" in onnx_runtime.refusal(torch.nn.Linear(1, 1), torch.device("cuda:0"))
    assert "bfloat16" in onnx_runtime.refusal(torch.nn.Linear(1, 1).bfloat16(), torch.device("cpu"))


@pytest.mark.parametrize(("source", "line"), [(DECIDES, 9), (ASKS, 8)])
@pytest.mark.usefixtures("no_onnxscript")
def test_a_model_whose_python_would_be_frozen_is_refused_by_the_place(
    source: str, line: int, model_dir: Path, packages: Path
) -> None:
    with pytest.raises(HandlerError) as raised:
        done(loaded(model_dir, put_archive(model_dir, source)), "none", "onnxruntime")

    assert str(raised.value) == (
        "`optimize: onnxruntime` cannot be done: Python decides by the values of its tensors"
        f" (net.py:{line}); torch's other exporter needs a package: pip install onnxscript"
    )
    assert not list(packages.rglob("model.onnx"))


@pytest.mark.heavy
def test_the_other_exporter_takes_what_torch_export_takes(model_dir: Path) -> None:
    pytest.importorskip("onnxscript")
    handler, plain = loaded(model_dir, entry := put_archive(model_dir, ASKS)), loaded(model_dir, entry)

    assert done(handler, "none", "onnxruntime")["onnxruntime"].applied
    for rows in (1, 2, 5):
        images = torch.randn(rows, 3, 224, 224)
        torch.testing.assert_close(handler.inference(images), plain.inference(images))


@pytest.mark.heavy
def test_and_refuses_what_that_refuses(model_dir: Path) -> None:
    pytest.importorskip("onnxscript")

    with pytest.raises(HandlerError) as raised:
        done(loaded(model_dir, put_archive(model_dir, DECIDES)), "none", "onnxruntime")

    assert str(raised.value).startswith(
        "`optimize: onnxruntime` cannot be done: Python decides by the values of its tensors (net.py:9); nor does"
        " torch's other exporter take it (GuardOnDataDependentSymNode: "
    )


def test_an_input_that_the_model_does_not_use_is_left_out(model_dir: Path) -> None:
    class Rows(BaseHandler):
        def preprocess(self, data: list[Any]) -> torch.Tensor:
            return torch.tensor([row["body"] for row in data])

        def inference(self, data: torch.Tensor, *_: Any, **__: Any) -> Any:
            return super().inference(torch.ones(len(data), 2), data)

        def example(self) -> list[float]:
            return [1.0, -2.0, 3.0]

    write(model_dir / "net.py", TWO.replace("self, rows", "self, unused, rows"))
    handler, plain = (loaded(model_dir, {"modelFile": "net.py"}, Rows) for _ in range(2))
    plain.model.load_state_dict(handler.model.state_dict())

    assert done(handler, "onnxruntime")["onnxruntime"].applied
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(handler.inference(rows), plain.inference(rows))


def test_outputs_are_nested_as_the_modules_are(model_dir: Path) -> None:
    class Rows(BaseHandler):
        def preprocess(self, data: list[Any]) -> torch.Tensor:
            return torch.tensor([row["body"] for row in data])

        def example(self) -> list[float]:
            return [1.0, -2.0, 3.0]

    write(model_dir / "net.py", TWO)
    handler, plain = (loaded(model_dir, {"modelFile": "net.py"}, Rows) for _ in range(2))
    plain.model.load_state_dict(handler.model.state_dict())

    assert done(handler, "onnxruntime")["onnxruntime"].applied
    output, expected = (
        each.inference(torch.randn(3, 3, generator=torch.Generator().manual_seed(1))) for each in (handler, plain)
    )

    assert isinstance(handler.model, OnnxModel)
    torch.testing.assert_close(output, expected)
    assert type(output["sums"]) is tuple


def test_torchscript_is_exported_too(model_dir: Path, entry: dict[str, str]) -> None:
    module = loaded(model_dir, entry).model
    torch.jit.script(module).save(str(model_dir / "model.pt"))
    handler, plain = (loaded(model_dir, {"serializedFile": "model.pt"}) for _ in range(2))

    assert done(handler, "none", "onnxruntime")["onnxruntime"].applied
    images = torch.randn(5, 3, 224, 224)
    torch.testing.assert_close(handler.inference(images), plain.inference(images), rtol=1e-4, atol=1e-5)
