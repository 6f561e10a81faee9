"""Answers are the same, close in their numbers, different, or the shadow failed."""

import pytest

from tsctl.daemon.core.job import Reply
from tsctl.daemon.extensions.shadowing.mirror import compare
from tsctl.daemon.models.routing.routes import Agreement


@pytest.mark.parametrize(
    ("answered", "shadow", "agreement"),
    [
        pytest.param(Reply(200, b"a"), Reply(200, b"a"), Agreement.SAME, id="the same bytes"),
        pytest.param(Reply(200, b"a"), Reply(200, b"b"), Agreement.DIFFERENT, id="other bytes"),
        pytest.param(Reply(200, b"a"), Reply(201, b"a"), Agreement.DIFFERENT, id="another status"),
        pytest.param(Reply(200, b"[0.1]"), Reply(200, b"[0.10001]"), Agreement.CLOSE, id="close numbers"),
        pytest.param(Reply(200, b"[0.1]"), Reply(200, b"[0.11]"), Agreement.DIFFERENT, id="other numbers"),
        pytest.param(Reply(200, b"[1e-9]"), Reply(200, b"[-1e-9]"), Agreement.CLOSE, id="numbers that are nearly none"),
        pytest.param(
            Reply(200, b'{"a": [1], "b": "x"}'), Reply(200, b'{"b":"x","a":[1.0001]}'), Agreement.CLOSE,
            id="the order of members",
        ),
        pytest.param(Reply(200, b'{"a": 1}'), Reply(200, b'{"b": 1}'), Agreement.DIFFERENT, id="other members"),
        pytest.param(Reply(200, b"[1]"), Reply(200, b"[1, 2]"), Agreement.DIFFERENT, id="a longer list"),
        pytest.param(Reply(200, b"[true]"), Reply(200, b"[1.0001]"), Agreement.DIFFERENT, id="a boolean is no number"),
        pytest.param(Reply(200, b"[1]"), Reply(200, b"1"), Agreement.DIFFERENT, id="another shape"),
        pytest.param(Reply(200, b"[" * 9999), Reply(200, b"[" * 9998), Agreement.DIFFERENT, id="too deep"),
        pytest.param(Reply(200, b"a"), Reply(503, b"m", error="E"), Agreement.FAILED, id="only the shadow fails"),
        pytest.param(Reply(200, b"m"), Reply(400, b"n", error="E"), Agreement.DIFFERENT, id="only one refuses"),
    ],
)  # fmt: skip
def test_compare(answered: Reply, shadow: Reply, agreement: Agreement) -> None:
    assert compare(answered, shadow) is agreement
