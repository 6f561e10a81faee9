"""What a request asks for; the answers to a batch of several kinds are in `conversations/results.txt`."""

import json
from pathlib import Path

import pytest

from tests.handlers.samples import context_of
from tests.kit.said import said_in
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.requests.kinds import Kind, kind_of, kinds_of


@said_in("kinds.txt")
def test_the_headers_say_what_a_request_asks_for(given: str) -> str:
    return kind_of(json.loads(given)).name


@pytest.mark.parametrize(
    ("headers", "rows", "kinds"),
    [
        pytest.param([{}, {"explain": "True"}], 2, [Kind.PREDICT, Kind.EXPLAIN], id="each row its own"),
        pytest.param([{"explain": "True"}, {}], 3, [Kind.EXPLAIN] * 3, id="more rows than requests: the first's"),
        pytest.param([{}, {"explain": "True"}], 1, [Kind.PREDICT], id="fewer rows than requests: the first's"),
    ],
)
def test_kinds_of_rows(headers: list[dict[str, str]], rows: int, kinds: list[Kind]) -> None:
    context = context_of(Path("/"))
    context.begin_batch([str(number) for number in range(len(headers))], headers)

    assert kinds_of(context, rows) == kinds


@pytest.mark.parametrize("context", [context_of(Path("/")), None, object()], ids=["loading", "none", "a user's own"])
def test_without_requests_all_ask_for_predictions(context: object) -> None:
    assert kinds_of(context, 2) == [Kind.PREDICT, Kind.PREDICT]


def test_a_users_handle_may_ask_torchserves_question_about_the_first_request() -> None:
    handler = BaseHandler()
    handler.context = context_of(Path("/"))
    handler.context.begin_batch(["r0", "r1"], [{"explain": "True"}, {}])

    assert handler._is_explain()
    assert handler.explain
    assert not handler._is_describe()
