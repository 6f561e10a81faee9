"""Long times as people write them, and the budget of memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.model_settings.kinds import TimeSpan
from tsctl.daemon.models.residency.residency import limits_of
from tsctl.daemon.setting_values import FOREVER, parse_memory_budget, parse_span, span_text

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("30s", 30.0), ("5m", 300.0), ("2 h", 7200.0), ("1D", 86400.0), ("0", 0.0), ("1.5m", 90.0)],
)
def test_a_time_is_read(text: str, seconds: float) -> None:
    assert parse_span(text) == TimeSpan().read(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "5 minutes", "-1", "1e3", "nan", "inf", "99999d"])
def test_other_text_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_span(text)
    with pytest.raises(ValueError, match="a time, such as 30s, 5m, 2h or forever"):
        TimeSpan().read(text)


@pytest.mark.parametrize("value", [True, None, -1, float("nan"), FOREVER * 2, [5]])
def test_a_value_of_yaml_is_a_number_or_text(value: object) -> None:
    with pytest.raises(ValueError, match="a time, such as"):
        TimeSpan().read(value)


@given(st.one_of(st.just(FOREVER), st.integers(0, 10**6).map(float)))
def test_what_is_shown_is_read_as_the_same(seconds: float) -> None:
    assert parse_span(span_text(seconds)) == seconds


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
