"""Whole numbers in a request reach a model in the dtype that it takes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.handlers.device import DEVICE, on_device
from tests.handlers.requests.test_gpu_context import of_driver
from tests.handlers.samples import context_of
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.support.model_inputs import dtype_for


class Lookup(nn.Module):
    """A table that whole numbers index, not as an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.arange(4.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table[x]


class Counted(nn.Module):
    """Counts the calls of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1).double()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        result: torch.Tensor = self.layer(x)
        return result


def handler_of(model: Any) -> BaseHandler:
    handler = BaseHandler()
    handler.model = model
    return on_device(handler)


def ask(handler: BaseHandler, *payloads: Any) -> list[Any]:
    return handler.handle([{"body": each} for each in payloads], context_of(Path("/")))


@pytest.mark.parametrize(
    ("model", "payload"),
    [
        pytest.param(nn.Linear(2, 1), [1, 2], id="a layer"),
        pytest.param(nn.Linear(2, 1).double(), [1, 2], id="of doubles"),
        pytest.param(nn.Sequential(nn.BatchNorm1d(2).eval(), nn.Linear(2, 1)), [1, 2], id="a norm"),
        pytest.param(nn.Conv1d(1, 1, 1), [[1, 2]], id="a convolution"),
        pytest.param(nn.Softmax(dim=-1), [1, 2], id="without parameters"),
        pytest.param(torch.jit.script(nn.Linear(2, 1)), [1, 2], id="TorchScript"),
        pytest.param(torch.jit.trace(nn.Linear(2, 1), torch.zeros(1, 2)), [1, 2], id="a trace"),
    ],
)
def test_whole_numbers_become_the_models_dtype(model: Any, payload: list[Any]) -> None:
    dtype = next((each.dtype for each in model.parameters()), torch.float32)
    with torch.no_grad():
        expected = model.to(DEVICE)(torch.tensor([payload], dtype=dtype, device=DEVICE)).tolist()

    torch.testing.assert_close(torch.tensor(ask(handler_of(model), payload)), torch.tensor(expected))


@pytest.mark.parametrize("model", [nn.Embedding(4, 2), Lookup(), nn.Sequential(nn.Embedding(4, 2), nn.Linear(2, 1))])
def test_a_model_that_takes_whole_numbers_gets_them(model: nn.Module) -> None:
    with torch.no_grad():
        expected = model.to(DEVICE)(torch.tensor([[1, 3]], device=DEVICE)).tolist()

    handler = handler_of(model)

    assert ask(handler, [1, 3]) == expected
    assert handler.whole_as is None


def test_a_model_raises_for_whole_numbers_once() -> None:
    model = Counted()
    handler = handler_of(model)

    for _ in range(3):
        ask(handler, [1, 2])

    assert model.calls == 4
    assert handler.whole_as is torch.float64


def test_an_error_of_another_kind_is_the_models_own() -> None:
    with pytest.raises(RuntimeError, match=r"same dtype|shapes cannot be multiplied|mat1"):
        ask(handler_of(nn.Linear(2, 1)), [1, 2, 3])


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (torch.ones(1), RuntimeError("dtype")),
        (torch.ones(1, dtype=torch.int64), of_driver("CUDA error: device-side assert triggered", 710)),
        (torch.ones(1, dtype=torch.int64), torch.OutOfMemoryError("CUDA out of memory")),
        ([1], RuntimeError("dtype")),
    ],
    ids=["fractions", "CUDA", "memory", "no tensor"],
)
def test_nothing_else_is_tried_for(data: Any, error: RuntimeError) -> None:
    assert dtype_for(nn.Linear(1, 1), data, error) is None
