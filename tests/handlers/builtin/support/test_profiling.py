"""With ENABLE_TORCH_PROFILER each batch leaves a trace, and is answered as without."""

import json
import logging
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of, write
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.sdk.context import Context

NET = """
    import torch
    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2
"""


@pytest.fixture
def handler(model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseHandler:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    write(model_dir / "net.py", NET)
    handler = BaseHandler()
    context: Context = context_of(model_dir, {"modelFile": "net.py", "modelName": "net"})
    context.begin_batch(["1"], [{}])
    handler.initialize(context)
    return handler


def predict(handler: BaseHandler) -> Any:
    assert handler.context is not None
    return handler.handle([{"data": [1.0, 2.0]}], handler.context)


def traces(folder: Path) -> list[Path]:
    return sorted(folder.glob("pytorch_profiler/net/*.json"))


def test_a_batch_leaves_a_trace_of_its_stages(
    handler: BaseHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ENABLE_TORCH_PROFILER", "true")

    with caplog.at_level(logging.INFO):
        assert predict(handler) == [[2.0, 4.0]]

    (trace,) = traces(tmp_path)
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"preprocess", "inference", "postprocess", "aten::mul"} <= names
    assert "aten::mul" in caplog.text


def test_a_handler_whose_own_initialize_keeps_no_manifest_is_profiled(
    handler: BaseHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_TORCH_PROFILER", "true")
    handler.manifest = None  # type: ignore[assignment]

    assert predict(handler) == [[2.0, 4.0]]
    assert list(tmp_path.glob("pytorch_profiler/*.json"))


def test_a_handle_of_a_users_own_may_profile_by_torchserves_name(handler: BaseHandler, tmp_path: Path) -> None:
    handler.get_insights = (  # type: ignore[method-assign]
        lambda tensor_data, raw_data, target=0: [(tensor_data.tolist(), raw_data, target)]
    )
    rows = [{"data": [1.0, 2.0]}]
    assert handler.context is not None

    answered, profile = handler._infer_with_profiler(data=rows)
    handler.context.begin_batch(["1"], [{"explain": "True"}])
    explained, _ = handler._infer_with_profiler(data=rows)

    assert (answered, explained) == ([[2.0, 4.0]], [([[1.0, 2.0]], [1.0, 2.0], 0)])
    assert "aten::mul" in {each.key for each in profile.key_averages()}
    assert traces(tmp_path)


def test_without_it_there_is_none(handler: BaseHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENABLE_TORCH_PROFILER", raising=False)

    assert predict(handler) == [[2.0, 4.0]]

    assert traces(tmp_path) == []


def test_a_handlers_own_arguments_are_taken(
    handler: BaseHandler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_TORCH_PROFILER", "true")
    seen: list[torch.profiler.profile] = []
    handler.profiler_args = {"activities": [torch.profiler.ProfilerActivity.CPU], "on_trace_ready": seen.append}

    assert predict(handler) == [[2.0, 4.0]]

    assert (len(seen), traces(tmp_path)) == (1, [])
