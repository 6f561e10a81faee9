"""TorchServe's handlers do without types; which handlers are which is in `conversations/detection.txt`."""

import sys
from pathlib import Path

import pytest

from tests.handlers.samples import write
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime


def load(model_dir: Path, source: str, handler: str = "handler.py") -> Runtime:
    write(model_dir / "handler.py", source)
    return Runtime.load(wire.Load("net", "1.0", str(model_dir), handler, {}, batch_size=1, threads=1))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("def handle(data, context): return data", id="a function"),
        pytest.param(
            "from tsctl.handlers.builtin.base import BaseHandler\nclass Mine(BaseHandler):\n"
            "    def initialize(self, context): ...\n    def predict(self, x: int): ...\n",
            id="a subclass of BaseHandler",
        ),
    ],
)
def test_a_worker_of_torchserves_handler_imports_nothing_for_types(
    model_dir: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tsctl.handlers.typed.entry", None)

    declared = load(model_dir, source).declared
    assert declared is None or declared.built_in
