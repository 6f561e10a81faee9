"""A batch in which some ask for predictions, some for explanations and some for a description."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.samples import context_of
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.requests.kinds import Kind, kind_of, kinds_of
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import UnreadablePayload, UnreadableRows
from tsctl.handlers.sdk.loader import EntryPoint

PREDICT, EXPLAIN, DESCRIBE = "predict", "explain", "describe"


class Tracing(BaseHandler):
    """Doubles numbers and explains by target; keeps what each stage was given."""

    def __init__(self) -> None:
        super().__init__()
        self.model = lambda numbers: numbers * 2
        self.seen: list[tuple[str, list[str | None]]] = []

    def note(self, stage: str, rows: int) -> None:
        assert self.context is not None
        assert len(self.context.request_ids) == rows
        self.seen.append((stage, [self.context.get_request_id(index) for index in range(rows)]))

    def preprocess(self, data: list[Any]) -> Any:
        self.note("preprocess", len(data))
        return super().preprocess(data)

    def postprocess(self, data: Any) -> list[Any]:
        assert self.context is not None
        self.note("postprocess", len(data))
        self.context.set_response_header(len(data) - 1, "X-Last", "1")
        return super().postprocess(data)

    def get_insights(self, tensor_data: torch.Tensor, raw_data: Any, target: Any = 0) -> list[Any]:
        if target == 13:
            raise RuntimeError("unlucky")
        return [f"{target} of {raw_data}"]

    def describe_handle(self) -> dict[str, str]:
        return {"kind": "doubling"}


def asking(kind: str, number: int, value: bytes = b"1.0", target: bytes | None = None) -> wire.Row:
    headers = [] if kind == PREDICT else [(kind, "True")]
    params: list[tuple[str, str, wire.Payload]] = [("data", "application/json", value)]
    params += [] if target is None else [("target", "", target)]
    return wire.Row(f"r{number}", headers, params)


def run(handler: BaseHandler, *rows: wire.Row) -> list[wire.Answer]:
    return Runtime(EntryPoint(handler, handler.handle), context_of(Path("/"))).run(rows)


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


def test_a_mixed_batch_is_answered_in_order() -> None:
    answers = run(
        Tracing(),
        asking(EXPLAIN, 0, b"5.0", target=b"3"),
        asking(PREDICT, 1, b"[1.0]"),
        asking(DESCRIBE, 2),
        asking(PREDICT, 3, b"[2.0]"),
        asking(EXPLAIN, 4, b"6.0"),
    )

    assert [answer.status for answer in answers] == [200] * 5
    assert [answer.body.split() for answer in answers] == [
        [b"3", b"of", b"5.0"],
        [b"[", b"2.0", b"]"],
        [b"{", b'"kind":', b'"doubling"', b"}"],
        [b"[", b"4.0", b"]"],
        [b"0", b"of", b"6.0"],
    ]


def test_the_predictions_of_a_mixed_batch_travel_together_and_explanations_alone() -> None:
    handler = Tracing()

    answers = run(handler, asking(EXPLAIN, 0), asking(PREDICT, 1), asking(EXPLAIN, 2), asking(PREDICT, 3))

    assert handler.seen == [
        ("preprocess", ["r1", "r3"]),
        ("postprocess", ["r1", "r3"]),
        ("preprocess", ["r0"]),
        ("preprocess", ["r2"]),
    ]
    assert [("X-Last", "1") in answer.headers for answer in answers] == [False, False, False, True]


def test_an_explanation_that_fails_fails_alone(capsys: pytest.CaptureFixture[str]) -> None:
    answers = run(Tracing(), asking(PREDICT, 0), asking(EXPLAIN, 1, target=b"13"), asking(EXPLAIN, 2, target=b"1"))

    assert [answer.status for answer in answers] == [200, 503, 200]
    assert answers[1].body == b"Prediction failed: RuntimeError: unlucky (Request r1)"
    assert capsys.readouterr().err.count("RuntimeError: unlucky") == 1


def test_predictions_that_fail_leave_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    handler = Tracing()
    handler.model = None

    answers = run(handler, asking(PREDICT, 0), asking(EXPLAIN, 1), asking(PREDICT, 2))

    assert [answer.status for answer in answers] == [503, 200, 503]
    assert capsys.readouterr().err.count("Traceback") == 1


def test_a_target_that_is_no_class_is_the_clients_fault() -> None:
    answers = run(Tracing(), asking(EXPLAIN, 0, target=b"cat"), asking(PREDICT, 1))

    assert [answer.status for answer in answers] == [400, 200]
    assert answers[0].body.startswith(b"The request's `target` should be the number of a class, not bytearray(b'cat')")


def test_a_row_that_cannot_be_read_is_left_out_of_a_mixed_batch() -> None:
    class Plain(BaseHandler):
        def __init__(self) -> None:
            super().__init__()
            self.model = lambda numbers: numbers

        def get_insights(self, tensor_data: Any, raw_data: Any, target: Any = 0) -> list[Any]:
            return ["explained"]

    answers = run(
        Plain(), asking(PREDICT, 0, b'"x"'), asking(EXPLAIN, 1, b'"y"'), asking(EXPLAIN, 2), asking(PREDICT, 3)
    )

    assert [answer.status for answer in answers] == [400, 400, 200, 200]


def test_rows_that_a_users_preprocess_finds_unreadable_are_named_by_their_place_in_the_batch() -> None:
    class Picky(Tracing):
        def preprocess(self, data: list[Any]) -> Any:
            bad = {index: UnreadablePayload("too large") for index, row in enumerate(data) if row["data"] > 9}
            if bad:
                raise UnreadableRows(bad)
            return super().preprocess(data)

    answers = run(Picky(), asking(EXPLAIN, 0), asking(PREDICT, 1), asking(PREDICT, 2, b"99"), asking(EXPLAIN, 3, b"99"))

    assert [answer.status for answer in answers] == [200, 200, 400, 400]


def test_who_asks_for_a_description_needs_no_payload() -> None:
    class Plain(BaseHandler):
        def describe_handle(self) -> str:
            return "described"

    (answer,) = run(Plain(), wire.Row("r0", [("describe", "True")], [("body", "", b"")]))

    assert (answer.status, answer.body) == (200, b"described")


def test_a_description_is_null_where_the_handler_has_none() -> None:
    (answer,) = run(BaseHandler(), asking(DESCRIBE, 0))

    assert (answer.status, answer.body) == (200, b"null")


def test_a_handler_that_explains_nothing_says_so() -> None:
    (answer,) = run(BaseHandler(), asking(EXPLAIN, 0))

    assert answer.status == 503
    assert b"NotImplementedError: the handler BaseHandler has no `get_insights`" in answer.body


@pytest.mark.parametrize(("result", "what"), [({}, "returned dict"), ([], "expected 1"), (["a", "b"], "returned 2")])
def test_an_explanation_is_one_item(result: Any, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    class Odd(Tracing):
        def explain_handle(self, data_preprocess: Any, raw_data: list[Any]) -> Any:
            return result

    answers = run(Odd(), asking(EXPLAIN, 0), asking(PREDICT, 1))

    assert [answer.status for answer in answers] == [503, 200]
    assert what in answers[0].body.decode()


def test_a_users_handle_that_calls_ours_is_separated_too() -> None:
    class Wrapping(Tracing):
        def handle(self, data: list[Any], context: Context) -> list[Any]:
            return [str(item) for item in super().handle(data, context)]

    answers = run(Wrapping(), asking(EXPLAIN, 0), asking(PREDICT, 1), asking(EXPLAIN, 2, target=b"2"))

    assert [answer.body for answer in answers] == [b"0 of 1.0", b"2.0", b"2 of 1.0"]


def test_a_users_handle_may_ask_torchserves_question_about_the_first_request() -> None:
    handler = Tracing()
    handler.context = context_of(Path("/"))
    handler.context.begin_batch(["r0", "r1"], [{"explain": "True"}, {}])

    assert handler._is_explain()
    assert handler.explain
    assert not handler._is_describe()
