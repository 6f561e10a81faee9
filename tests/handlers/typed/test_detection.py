"""Which entry point of a file is a typed one, and which is TorchServe's."""

import sys
from pathlib import Path

import pytest

from tests.handlers.samples import row, write
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.errors import HandlerError


def load(model_dir: Path, source: str, handler: str = "handler.py") -> Runtime:
    write(model_dir / "handler.py", source)
    return Runtime.load(wire.Load("net", "1.0", str(model_dir), handler, {}, batch_size=1, threads=1))


TYPED = {
    "a function predict": "def predict(text: str) -> str:\n    return text\n",
    "a function handle": "def handle(text: str) -> str:\n    return text\n",
    "with the context": "def predict(text: str, context) -> str:\n    return text\n",
    "with an annotated context": "from tsctl.handlers.sdk.context import Context\n"
    "def handle(text: str, context: Context) -> str:\n    return text\n",
    "hints that are texts": "from __future__ import annotations\ndef predict(text: str) -> str:\n    return text\n",
    "a class": "class Mine:\n    def predict(self, text: str) -> str:\n        return text\n",
    "a class with setup": "class Mine:\n    def setup(self):\n        self.ready = True\n"
    "    def predict(self, text: str) -> str:\n        assert self.ready\n        return text\n",
    "a class with load": "class Mine:\n    def load(self, context):\n        self.name = context.model_name\n"
    "    def predict(self, text: str) -> str:\n        assert self.name\n        return text\n",
    "a class with handle": "class Mine:\n    def handle(self, text: str) -> str:\n        return text\n",
    "beside a struct": "import msgspec\nclass Row(msgspec.Struct):\n    a: int\n"
    "def predict(text: str) -> str:\n    return text\n",
    "a default that is no input": "def predict(text: str, *, helper=len, **more) -> str:\n    return text\n",
    "only the position counts": "def predict(text: str, /) -> str:\n    return text\n",
}


@pytest.mark.parametrize("source", TYPED.values(), ids=TYPED.keys())
def test_a_typed_handler_is(model_dir: Path, source: str) -> None:
    runtime = load(model_dir, source)

    [answer] = runtime.run([row(b"a")])

    assert (answer.status, answer.body) == (200, b"a")
    assert runtime.declared is not None
    assert [(each.name, each.kind) for each in runtime.declared.inputs] == [("text", "text")]


def test_a_function_or_class_may_be_named(model_dir: Path) -> None:
    source = (
        "def mine(text: str) -> str:\n    return text\nclass Other:\n    def predict(self, text: str) -> str: ...\n"
    )

    assert load(model_dir, source, "handler.py:mine").declared is not None
    assert load(model_dir, source, "handler.py:Other").declared is not None


TORCHSERVE = {
    "without hints": "def handle(data, context):\n    return data and [type(data[0]).__name__]\n",
    "list[dict]": "def handle(data: list[dict], context):\n    return data and [type(data[0]).__name__]\n",
    "typing's names": "from typing import *\ndef handle(data: List[Dict[str, Any]], context: Any) -> List[str]:\n"
    "    return data and [type(data[0]).__name__]\n",
    "a hint of the context": "from tsctl.handlers.sdk.context import Context\ndef handle(data, ctx: Context):\n"
    "    return data and [type(data[0]).__name__]\n",
    "a class": "class Mine:\n    def initialize(self, context): ...\n"
    "    def handle(self, data: list[dict], context) -> list:\n        return [type(data[0]).__name__]\n",
    "ctx": "from typing import *\ndef handle(data: list, ctx: Any):\n    return data and [type(data[0]).__name__]\n",
    "a class beside a function predict": "def predict(x): ...\nclass Mine:\n    def initialize(self, context): ...\n"
    "    def handle(self, data, context):\n        return [type(data[0]).__name__]\n",
    "a hint that cannot be decoded": "class Rows: ...\ndef handle(data: Rows, context):\n"
    "    return data and [type(data[0]).__name__]\n",
    "only a return hint": "def handle(data, context) -> list[str]:\n    return data and [type(data[0]).__name__]\n",
}


@pytest.mark.parametrize("source", TORCHSERVE.values(), ids=TORCHSERVE.keys())
def test_torchserves_form_stays(model_dir: Path, source: str) -> None:
    runtime = load(model_dir, source)

    [answer] = runtime.run([row(b"a")])

    assert (answer.status, answer.body) == (200, b"dict")
    assert runtime.declared is None


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def predict(text): ...", "^handler.py, line 1: `predict` needs a type hint for `text`, such as `text: str`"),
        (
            "def predict(text: open): ...",
            "`predict` has a parameter `text: .*open.*`, and a request cannot be decoded to this type",
        ),
        (
            "def predict(texts: list[str], other: int): ...",
            "`predict` takes lists, and its parameter `other` is not one",
        ),
        (
            "import numpy as np\ndef predict(x: np.array): ...",
            r"line 2: `predict` has a parameter `x: numpy.array`, and that is a function, no type: write"
            r" `x: numpy.ndarray`$",
        ),
        (
            "import torch\ndef predict(x: list[torch.tensor]): ...",
            r"`x: list\[torch.tensor\]`, and that is a function, no type: write `x: list\[torch.Tensor\]`$",
        ),
        (
            "def handle(x): ...",
            r"^handler.py, line 1: `handle\(x\)` has no type hints, so it is called as TorchServe calls it, with two"
            r" arguments: `handle\(data, context\)`. To get a request's values, say what each is: `handle\(x: str\)`$",
        ),
        (
            "class Mine:\n    def initialize(self, context): ...\n    def handle(self, data): ...",
            r"^handler.py, line 3: `handle\(data\)` has no type hints",
        ),
        (
            "import torch\nhandle = torch.nn.Linear(1, 1)",
            r"^handler.py: `handle` is a torch.nn.Module, Linear, and no function. Give it another name, and call it:"
            r" `def predict\(x: torch.Tensor\) -> torch.Tensor: return model\(x\)`",
        ),
        ("import torch\npredict = torch.nn.Linear(1, 1)", "`predict` is a torch.nn.Module"),
        ("import torch\nnet = torch.nn.Linear(1, 1)", r"it has none. A network is called by a handler: .*net\(x\)`$"),
        (
            "import torch\nclass Net(torch.nn.Module): ...",
            r"it has Net. A network is called by a handler: .*return model\(x\)`$",
        ),
        ("handle = [1]", "^handler.py: `handle` is list, and no function"),
        (
            "class Mine:\n    def __init__(self, path, n=1): ...\n    def predict(self, x: str): ...",
            "^handler.py, line 1: a worker makes Mine without arguments, and its `__init__` takes `path`: give each a"
            " default",
        ),
        (
            "class Mine:\n    def setup(self): ...\n    def handle(self, data, context): ...",
            "^handler.py, line 1: Mine has no method `initialize`, which loads the model in each worker: rename",
        ),
        ("def predict() -> str: ...", "`predict` has no parameter that a request could fill"),
        ("def predict(x: 'Missing'): ...", "the type hints of `predict` cannot be evaluated: name 'Missing'"),
        ("def predict(data, context): ...", "takes TorchServe's arguments; call it `handle`"),
        ("class Mine:\n    def predict(self, text): ...", "`predict` needs a type hint for `text`"),
        (
            "class A:\n    def predict(self, text: str): ...\nclass B:\n    def predict(self, text: str): ...",
            "exactly one class with a method `predict`; it has `handler.py:A`, `handler.py:B`",
        ),
    ],
)
def test_a_handler_that_cannot_be_called_is_told_why(model_dir: Path, source: str, reason: str) -> None:
    with pytest.raises(HandlerError, match=reason):
        load(model_dir, source)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(TORCHSERVE["without hints"], id="a function"),
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


def test_an_envelope_is_not_for_typed_handlers(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TS_SERVICE_ENVELOPE", "kserve")

    [answer] = load(model_dir, TYPED["a function predict"]).run([row(b"a")])

    assert answer.body == b"a"
