"""A model is the same as if its random weights had been drawn before its own were read."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tsctl.handlers.builtin.bare_model import construct_and_load, copies_weights


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 2)
        self.first = nn.Linear(3, 4)  # the former one is gone
        self.norm = nn.BatchNorm1d(4)
        self.weight = nn.Parameter(torch.empty(4, 4))
        nn.init.trunc_normal_(self.weight)
        self.copies = nn.ModuleList(copy.deepcopy(nn.Linear(4, 4)) for _ in range(2))
        self.noise = torch.empty(1000).normal_()  # of no parameter


class Forgetful(Net):
    """Leaves a parameter as it was made."""

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        return super().load_state_dict({"first.weight": state_dict["first.weight"]}, strict=False, assign=assign)


class Hidden(nn.Module):
    """Has a parameter that no file holds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.hidden = [nn.Parameter(torch.empty(1000))]
        nn.init.normal_(self.hidden[0], mean=5.0)


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(7)
    return dict(Net().state_dict())


def made(make: Callable[[], nn.Module], state: dict[str, torch.Tensor]) -> tuple[Any, int]:
    """Return the model, and how often it was constructed."""
    number = 0

    def counted() -> nn.Module:
        nonlocal number
        number += 1
        return make()

    model = construct_and_load(counted, lambda model: model.load_state_dict(state))
    return model, number


def test_all_weights_are_those_of_the_file(state: dict[str, torch.Tensor]) -> None:
    model, number = made(Net, state)

    assert number == 1
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_random_values_of_what_is_no_parameter_are_drawn(state: dict[str, torch.Tensor]) -> None:
    model, _ = made(Net, state)

    assert 0.8 < model.noise.std().item() < 1.2


def test_no_random_values_are_drawn_for_parameters(
    state: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nn.init, "calculate_gain", lambda *_: pytest.fail("drawn"))  # of kaiming_uniform_

    made(lambda: nn.Linear(2, 2), {"weight": torch.ones(2, 2), "bias": torch.ones(2)})


def test_a_class_that_does_not_load_all_is_constructed_as_it_wants(state: dict[str, torch.Tensor]) -> None:
    model, number = made(Forgetful, state)

    assert number == 2
    assert torch.equal(model.first.weight, state["first.weight"])
    assert 0.01 < model.weight.std().item() < 10


def test_a_parameter_that_no_file_holds_has_its_random_values() -> None:
    model, number = made(Hidden, dict(nn.Sequential().state_dict()) | {
        "linear.weight": torch.ones(2, 2), "linear.bias": torch.ones(2),
    })  # fmt: skip

    assert number == 2
    assert 4.5 < model.hidden[0].mean().item() < 5.5


def test_weights_that_are_assigned_count_as_loaded(state: dict[str, torch.Tensor]) -> None:
    number = 0

    def make() -> nn.Module:
        nonlocal number
        number += 1
        return Net()

    model: Any = construct_and_load(make, lambda model: model.load_state_dict(state, assign=True))

    assert torch.equal(model.state_dict()["weight"], state["weight"])


class OwnWay(nn.Module):
    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        self.kept = state_dict[f"{prefix}kept"]


def _hooked() -> nn.Module:
    model = nn.Linear(2, 2)
    model.register_load_state_dict_post_hook(lambda module, keys: None)
    return model


@pytest.mark.parametrize(
    ("make", "copied"),
    [
        pytest.param(lambda: nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), True, id="torch's own modules"),
        pytest.param(Net, True, id="a class that only combines them"),
        pytest.param(Forgetful, False, id="a class with a `load_state_dict` of its own"),
        pytest.param(lambda: nn.Sequential(OwnWay()), False, id="a part that takes its tensors itself"),
        pytest.param(_hooked, False, id="a part with a hook"),
    ],
)
def test_a_file_is_mapped_only_where_all_is_copied(make: Callable[[], nn.Module], copied: bool) -> None:
    assert copies_weights(make()) is copied
