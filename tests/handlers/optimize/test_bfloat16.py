"""Where bfloat16 is fast, and that a model in it takes and gives float32."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.handlers.device import DEVICE
from tsctl.handlers.optimize.bfloat16 import Bfloat16, refusal

CPU = torch.device("cpu")


def cpuinfo(flags: str, key: str = "flags") -> str:
    return f"processor\t: 0\nmodel name\t: Some Chip\n{key}\t\t: fpu {flags} sse2\n\nprocessor\t: 1\n"


SLOW = "the processor (Some Chip) has no fast path for bfloat16: neither AMX nor AVX512_BF16"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (cpuinfo("amx_bf16"), ""),
        (cpuinfo("avx512_bf16"), ""),
        (cpuinfo("bf16", "Features"), ""),
        (cpuinfo("svebf16", "Features"), ""),
        (cpuinfo("avx512f avx512_vnni amx_tile"), SLOW),
        (cpuinfo("asimd", "Features"), SLOW),
    ],
)
def test_a_processor_needs_a_flag_for_it(text: str, refused: str) -> None:
    assert refusal(CPU, text) == refused


@pytest.mark.parametrize(("capability", "refused"), [((7, 5), True), ((8, 0), False), ((9, 0), False)])
def test_a_gpu_needs_tensor_cores_for_it(
    capability: tuple[int, int], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some Card")

    reason = refusal(torch.device("cuda:0"))

    assert reason == ("the GPU (Some Card) has no fast path for bfloat16" if refused else "")


class Mixed(nn.Module):
    """Takes whole numbers, floats and a list; gives a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.labels = ["a", "b"]

    def forward(self, numbers: torch.Tensor, floats: list[torch.Tensor], *, scale: torch.Tensor) -> dict[str, Any]:
        self.types = (numbers.dtype, floats[0].dtype, scale.dtype)
        return {"out": self.linear(floats[0]) * scale, "best": numbers, "name": "x"}


def test_it_takes_and_gives_float32() -> None:
    model = Mixed().to(DEVICE)
    narrow = Bfloat16(model)

    numbers, ones, scale = (each.to(DEVICE) for each in (torch.tensor([1]), torch.ones(1, 2), torch.tensor(2.0)))
    output = narrow(numbers, [ones], scale=scale)

    assert model.types == (torch.int64, torch.bfloat16, torch.bfloat16)
    assert (output["out"].dtype, output["best"].dtype, output["name"]) == (torch.float32, torch.int64, "x")


def test_weights_are_cast_when_it_is_made_and_not_at_a_call() -> None:
    narrow = Bfloat16(nn.Linear(3, 2))
    weight = narrow.narrow.get_parameter("weight")
    before = weight.data_ptr()

    narrow(torch.ones(1, 3))

    same = narrow.narrow.get_parameter("weight") is weight
    assert (weight.dtype, weight.data_ptr(), same) == (torch.bfloat16, before, True)


def test_its_other_members_are_the_models_own() -> None:
    narrow = Bfloat16(Mixed())

    assert narrow.labels == ["a", "b"]
    assert narrow.linear.weight.dtype == torch.bfloat16
    with pytest.raises(AttributeError):
        narrow.nothing  # noqa: B018
