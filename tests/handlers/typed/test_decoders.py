"""Bodies are decoded by what the parameter is, and no more often than that takes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.handlers.typed.calls import ask
from tsctl.daemon.api.management.status import is_compiled
from tsctl.handlers.typed import decoders


@pytest.mark.skipif(is_compiled(), reason="what a compiled module calls cannot be replaced")
def test_a_body_that_is_no_json_is_not_parsed_again_for_a_member(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr(decoders, "member_of", lambda _, name: searched.append(name))

    def predict(numbers: Mapping[str, float]) -> int:
        return len(numbers)

    broken, other = ask(predict, b'{"a": 1', b'{"a": "b"}', content_type="application/json")

    assert (broken.status, other.status) == (400, 400)
    assert b"not JSON" in broken.body
    assert searched == ["numbers"]  # in the other one


@pytest.mark.parametrize(
    ("raised", "status", "text"),
    [
        pytest.param(KeyError("lily"), 400, "`flowers`: KeyError: 'lily'", id="a key that is not there"),
        pytest.param(ZeroDivisionError("by 0"), 400, "`flowers`: ZeroDivisionError: by 0", id="a number for nothing"),
        pytest.param(AssertionError("no rose"), 400, "`flowers`: AssertionError: no rose", id="an assertion"),
        pytest.param(ValueError("no rose"), 400, "`flowers`: no rose", id="an error of the value"),
        pytest.param(NameError("price"), 503, "Prediction failed: NameError: price", id="a bug"),
        pytest.param(OSError("no file"), 503, "Prediction failed: OSError: no file", id="a fault of the machine"),
    ],
)
def test_code_of_a_type_fails_its_row_alone_with_400_where_it_refuses_the_value(
    raised: Exception, status: int, text: str
) -> None:
    @dataclass
    class Flower:
        name: str

        def __post_init__(self) -> None:
            if self.name != "rose":
                raise raised

    def predict(flowers: list[Flower]) -> list[int]:
        return [len(flowers)] * len(flowers)

    other, lily = (json.dumps({"name": name}).encode() for name in ("rose", "lily"))
    answers = ask(predict, other, lily, other, content_type="application/json")

    assert [each.status for each in answers] == [200, status, 200]
    assert text in answers[1].body.decode()
    assert {answers[0].body, answers[2].body} == {b"2"}
