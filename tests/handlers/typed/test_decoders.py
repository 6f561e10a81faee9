"""Bodies are decoded by what the parameter is, and no more often than that takes."""

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


def test_a_type_whose_own_check_fails_fails_its_row_alone() -> None:
    @dataclass
    class Flower:
        name: str

        def __post_init__(self) -> None:
            self.price = {"rose": 3}[self.name]

    def predict(flowers: list[Flower]) -> list[int]:
        return [each.price for each in flowers]

    known, unknown = ask(predict, b'{"name": "rose"}', b'{"name": "lily"}', content_type="application/json")

    assert (known.status, known.body) == (200, b"3")
    assert (unknown.status, b"`flowers`: KeyError: 'lily'" in unknown.body) == (400, True)
