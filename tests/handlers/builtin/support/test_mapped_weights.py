"""A file of weights is mapped only where all of its values are copied: the file may change later."""

from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from tsctl.handlers.builtin.support.modelfile import copies_weights


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)


class Forgetful(Net):
    """Leaves a parameter as it was made."""

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        return super().load_state_dict({"first.weight": state_dict["first.weight"]}, strict=False, assign=assign)


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
