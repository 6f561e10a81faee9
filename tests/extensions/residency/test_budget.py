"""The budget of memory of all models, as text."""

from tests.kit.said import reason, said_in
from tsctl.daemon.extensions.residency import parse_memory_budget
from tsctl.daemon.extensions.residency.residency import limits_of


@said_in("budgets.txt")
def test_a_budget_is_a_limit_of_each_device(given: str) -> str:
    return reason(lambda: limits_of(parse_memory_budget(given), gpus=2), ValueError)


def test_without_a_budget_nothing_is_limited() -> None:
    assert limits_of(None, gpus=2) == {}
