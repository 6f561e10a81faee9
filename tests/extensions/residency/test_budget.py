"""The budget of memory of all models, as text."""

import pytest

from tsctl.daemon.extensions.residency import parse_memory_budget
from tsctl.daemon.extensions.residency.residency import limits_of

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("16GiB", {"host": 16 * GIB}),
        ("host=16GiB, gpu=20GiB", {"host": 16 * GIB, "gpu0": 20 * GIB, "gpu1": 20 * GIB}),
        ("GPU=1GiB", {"gpu0": GIB, "gpu1": GIB}),
    ],
)
def test_a_budget_is_a_limit_of_each_device(text: str, limits: dict[str, int]) -> None:
    assert limits_of(parse_memory_budget(text), gpus=2) == limits


@pytest.mark.parametrize("text", ["", "0GiB,host=1GiB", "disk=1GiB", "host=1GiB,host=2GiB", "host=0"])
def test_other_text_is_no_budget(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no(t a size| budget of memory)"):
        parse_memory_budget(text)


def test_without_a_budget_nothing_is_limited() -> None:
    assert limits_of(None, gpus=2) == {}
