"""What a request asks for; the answers to a batch of several kinds are in `conversations/results.txt`."""

from pathlib import Path

import pytest

from tests.handlers.samples import context_of
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.requests.kinds import Kind, kind_of, kinds_of


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        pytest.param({}, Kind.PREDICT, id="no header asks for a prediction"),
        pytest.param({"explain": "True"}, Kind.EXPLAIN, id="explain"),
        pytest.param({"explain": "true"}, Kind.PREDICT, id="only True is yes"),
        pytest.param({"explain": "False"}, Kind.PREDICT, id="False is no"),
        pytest.param({"describe": "True"}, Kind.DESCRIBE, id="describe"),
        pytest.param({"describe": "True", "explain": "True"}, Kind.DESCRIBE, id="describe comes first"),
    ],
)
def test_the_headers_say_what_a_request_asks_for(headers: dict[str, str], kind: Kind) -> None:
    assert kind_of(headers) is kind


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
