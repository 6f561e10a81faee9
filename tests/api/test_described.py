"""An answer that the descriptions do not tell of is noticed: each answer in these tests is one that they tell."""

from typing import Any

import pytest

from tests.api.described import JSON, Described
from tests.http.peer import Answer
from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.api.management.openapi import describe_management
from tsctl.daemon.api.openapi import answer as answers
from tsctl.daemon.api.openapi import listed, members, one_of, operation, whole

OF_JSON = {"content-type": JSON}
THING = members({"sizes": listed(whole(1))}, {"word": one_of("a", "b")})
THINGS = Described(
    own=False, further={"/things": {"get": operation("things", [], {"200": answers("Things.", THING)}, {})}}
)


@pytest.mark.parametrize(
    ("answer", "faults"),
    [
        (Answer(200, OF_JSON, b'{"sizes": [1, 2], "word": "a", "more": null}'), []),
        (Answer(204, {}, b""), ["status 204 is not described: b''"]),
        (Answer(200, {"content-type": "a/b"}, b""), ["content type `a/b` is not described"]),
        (Answer(200, OF_JSON, b"{}"), ["$ lacks `sizes`"]),
        (Answer(200, OF_JSON, b"[]"), ["$ is [], and should be of type object"]),
        (
            Answer(200, OF_JSON, b'{"sizes": [true, 0], "word": "c"}'),
            [
                "$.sizes[0] is True, and should be of type integer",
                "$.sizes[1] is 0, and should be at least 1",
                "$.word is 'c', and should be one of ['a', 'b']",
            ],
        ),
    ],
)
def test_an_answer_that_is_not_described_is_noticed(answer: Answer, faults: list[str]) -> None:
    assert THINGS.faults("GET", "/things?a=b", answer) == faults


def test_half_an_error_is_noticed() -> None:
    assert THINGS.faults("GET", "/models/m", Answer(404, OF_JSON, b'{"code": 404, "message": "no"}')) == [
        "$ lacks `type`"
    ]


@pytest.mark.parametrize("description", [describe_api(), describe_management(own=True)])
def test_every_operation_has_a_name_of_its_own(description: dict[str, Any]) -> None:
    names = [told["operationId"] for path in description["paths"].values() for told in path.values()]

    assert len(names) == len(set(names)) > 15
