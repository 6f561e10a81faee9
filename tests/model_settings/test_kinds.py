"""Each kind of value reads what people write at a border, and says of the rest what it should be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.model_settings import MOST, ModelSetting, ValueKind
from tsctl.daemon.model_settings.kinds import Boolean, Choice, Document, Duration, Integer
from tsctl.daemon.tables import MODEL_SETTINGS

LIST = Document("a list", lambda value: isinstance(value, list))
values = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=3)


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (Integer(1), 1, 1),
        pytest.param(Integer(1), 8.0, 8, id="a float without a fraction is whole"),
        (Duration(), 2, 2.0),
        pytest.param(Duration("ms"), 25, 0.025, id="milliseconds are seconds inside"),
        (Duration(), 0, 0.0),
        (Duration(positive=True), 1e-3, 1e-3),
        (Boolean(), False, False),
        (Choice(("a", "b")), "b", "b"),
        (LIST, [1], [1]),
    ],
)
def test_a_value_is_read(kind: ValueKind, value: Any, read: Any) -> None:
    assert kind.read(value) == read
    assert type(kind.read(value)) is type(read)
    texts = {"7": Integer().parse, "2.5": Duration("ms").parse, "TRUE": Boolean().parse, "a": Choice(("a", "b")).parse}
    assert [parse(text) for text, parse in texts.items()] == [7, 0.0025, True, "a"]


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (Integer(1), 0, "a whole number of at least 1"),
        (Integer(1), True, "a whole number of at least 1"),
        (Integer(1), "8", "a whole number of at least 1"),
        (Integer(0, 9), 10, "a whole number from 0 to 9"),
        (Integer(), MOST + 1, "at most 1000000000"),
        (Duration(), -1, "a number from 0 to 1e9"),
        (Duration(), float("nan"), "a number from 0 to 1e9"),
        (Duration(), 10**400, "a number from 0 to 1e9"),
        (Duration(positive=True), 0, "more than 0 seconds; leave it out for the daemon's default"),
        (Boolean(), 1, "true or false"),
        (Choice(("a", "b")), ["a"], "one of a, b"),
        (LIST, 1, "a list"),
    ],
)
def test_a_value_that_cannot_be_is_told_what_it_should_be(kind: ValueKind, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        kind.read(value)

    assert str(caught.value) == sentence


@given(st.sampled_from(MODEL_SETTINGS), values)
def test_whatever_comes_is_read_within_the_limits_or_refused(row: ModelSetting, value: Any) -> None:
    for read in (row.kind.read, row.kind.parse if isinstance(value, str) else row.written.read):
        try:
            result = read(value)
        except ValueError as error:
            result = error

        if not isinstance(result, ValueError):
            row.kind.check(result)
            row.kind.show(result)
