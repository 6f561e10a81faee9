"""The small functions and classes that handlers import from TorchServe."""

import io
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.handlers.device import DEVICE
from tests.handlers.samples import context_of
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.torchserve import util
from tsctl.handlers.torchserve.base_envelope import BaseEnvelope
from tsctl.handlers.torchserve.batch_streamer import TextIteratorStreamerBatch


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        pytest.param("tsctl.handlers.sdk.context.Context", None, id="a dotted name"),
        pytest.param("sdk.context.Context", "tsctl.handlers", id="below a prefix"),
        pytest.param("Context", "tsctl.handlers.sdk.context", id="in the prefix itself"),
    ],
)
def test_import_class_finds_a_class(name: str, prefix: str | None) -> None:
    assert util.import_class(name, prefix) is Context


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        pytest.param("", "`` should name a module and a class in it", id="nothing"),
        pytest.param("Context", "`Context` should name a module and a class in it", id="no module"),
        pytest.param(
            "tsctl.handlers.sdk.context.Nothing",
            r"`tsctl\.handlers\.sdk\.context` has no class `Nothing`",
            id="no class",
        ),
        pytest.param("tsctl.handlers.nowhere.Context", "No module named", id="a module that is not there"),
    ],
)
def test_import_class_says_what_is_missing(name: str, sentence: str) -> None:
    with pytest.raises(ImportError, match=sentence):
        util.import_class(name)


def test_list_classes_from_module_leaves_imported_ones_out() -> None:
    module = ModuleType("sample")
    exec("from pathlib import Path\nclass B(dict): ...\nclass A: ...\n", vars(module))

    assert util.list_classes_from_module(module) == [vars(module)["A"], vars(module)["B"]]
    assert util.list_classes_from_module(module, dict) == [vars(module)["B"]]


def test_check_process_mem_usage_logs_bytes_of_each_process(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        util.check_process_mem_usage(io.StringIO(f"{os.getpid()},,999999999,x\n"))

    messages = caplog.messages
    pid, _, size = messages[0].partition(":")
    assert int(pid) == os.getpid()
    assert 1_000_000 < int(size) < 100_000_000_000
    assert messages[1:] == ["there is no process 999999999", "999999999:0", "there is no process x", "x:0"]


class Upper(BaseEnvelope):
    def parse_input(self, data: Any) -> Any:
        return [row["body"].upper() for row in data]

    def format_output(self, data: Any) -> Any:
        return [{"answer": each} for each in data]


def test_a_users_own_envelope_parses_and_formats() -> None:
    context = context_of(Path("/"))
    envelope = Upper(lambda data, context: data)

    assert envelope.handle([{"body": "a"}], context) == [{"answer": "A"}]
    assert envelope.context is context
    assert envelope.handle(None, context) is None


class Streamer:
    """Stands for transformers' TextIteratorStreamer: a text for each token."""

    def __init__(self, tokenizer: Any, skip_prompt: bool, timeout: float | None, **decode_kwargs: Any) -> None:
        self.texts: list[str] = []

    def put(self, value: torch.Tensor) -> None:
        self.texts.append("/".join(map(str, value.flatten().tolist())))

    def end(self) -> None:
        self.texts.append("")

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("transformers.generation.streamers")
    module.TextIteratorStreamer = Streamer
    for name in ("transformers", "transformers.generation"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("transformers")
def test_a_batch_of_texts_is_streamed_step_by_step() -> None:
    streamer = TextIteratorStreamerBatch(tokenizer=None, batch_size=2)

    streamer.put(torch.tensor([[1, 2], [3, 4]], device=DEVICE))
    streamer.put(torch.tensor([5, 6], device=DEVICE))
    streamer.end()

    assert list(streamer) == [
        [{"text": "1/2"}, {"text": "3/4"}],
        [{"text": "5"}, {"text": "6"}],
        [{"text": ""}, {"text": ""}],
    ]


@pytest.mark.usefixtures("transformers")
def test_a_batch_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="made for 2 rows, and is given 3"):
        TextIteratorStreamerBatch(tokenizer=None, batch_size=2).put(torch.zeros(3, 1, device=DEVICE))
