"""Long times as people write them, and the budget of memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.model_settings.kinds import TimeSpan
from tsctl.daemon.setting_values import FOREVER, parse_span, span_text


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
