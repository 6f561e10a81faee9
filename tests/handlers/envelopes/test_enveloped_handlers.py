"""Envelopes around our own handlers: rows fail alone, kinds are separated, the context is the request's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.handlers.samples import context_of, row, write
from tsctl.handlers import wire
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.envelopes.entry import enveloped
from tsctl.handlers.envelopes.json import JSONEnvelope
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.loader import EntryPoint


class Doubling(BaseHandler):
    def __init__(self) -> None:
        super().__init__()
        self.model = lambda numbers: numbers * 2

    def get_insights(self, tensor_data: Any, raw_data: Any, target: Any = 0) -> list[Any]:
        if raw_data == 13:
            raise RuntimeError("unlucky")
        return [f"why {raw_data}"]

    def describe_handle(self) -> str:
        return "it doubles"


def run(name: str, handler: BaseHandler, *instances: list[Any], **headers: tuple[str, str]) -> list[wire.Answer]:
    """Run one batch; `r1=("explain", "True")` puts a header on the request of that id."""
    rows = []
    for index, own in enumerate(instances):
        request = row(json.dumps({"instances": own}).encode(), "application/json", request_id=f"r{index}")
        request.headers += [headers[request.id]] if request.id in headers else []
        rows.append(request)
    return Runtime(enveloped(EntryPoint(handler, handler.handle), name), context_of(Path("/"))).run(rows)


def test_an_instance_that_cannot_be_read_fails_its_request_and_no_other() -> None:
    answers = run("kserve", Doubling(), [1, 2], [3, "four"], [5])

    assert [answer.status for answer in answers] == [200, 400, 200]
    assert [json.loads(answers[index].body) for index in (0, 2)] == [{"predictions": [2, 4]}, {"predictions": [10]}]
    assert answers[1].body.startswith(b"The request is not an array of numbers: ")


def test_an_instance_that_a_users_preprocess_hands_on_unreadable_fails_its_request_and_no_other() -> None:
    from tsctl.handlers.sdk.errors import UnreadablePayload, UnreadableRows

    class Picky(Doubling):
        def preprocess(self, data: list[Any]) -> Any:
            large = {index: UnreadablePayload("too large") for index, each in enumerate(data) if each > 9}
            if large:
                raise UnreadableRows(large)
            return super().preprocess(data)

    answers = run("kserve", Picky(), [1, 2], [3, 99], [4])

    assert [answer.status for answer in answers] == [200, 400, 200]


def test_explained_and_predicted_requests_share_a_batch() -> None:
    answers = run("kserve", Doubling(), [1], [2, 3], [4], r1=("explain", "True"))

    assert [json.loads(answer.body) for answer in answers] == [
        {"predictions": [2]},
        {"explanations": ["why 2", "why 3"]},
        {"predictions": [8]},
    ]


def test_an_explanation_that_fails_fails_its_request_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    answers = run("kserve", Doubling(), [1], [2, 13], r1=("explain", "True"))

    assert [answer.status for answer in answers] == [200, 503]
    assert b"RuntimeError: unlucky" in answers[1].body
    assert "unlucky" in capsys.readouterr().err


def test_a_description_goes_out_as_it_is() -> None:
    (answer,) = run("kserve", Doubling(), [1], r0=("describe", "True"))

    assert answer.body == b"it doubles"


def test_a_handler_sees_the_request_that_an_instance_came_with() -> None:
    class Naming(Doubling):
        def postprocess(self, data: Any) -> list[Any]:
            assert self.context is not None
            self.context.set_response_header(len(data) - 1, "X-Last", "1")
            return [self.context.get_request_id(index) for index in range(len(data))]

    answers = run("kserve", Naming(), [1, 2], [3])

    assert [json.loads(answer.body)["predictions"] for answer in answers] == [["r0", "r0"], ["r1"]]
    assert [("X-Last", "1") in answer.headers for answer in answers] == [False, True]


def test_the_environment_names_the_envelope(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        model_dir / "mine.py", "    def handle(data, context):\n        return data and [each + 1 for each in data]\n"
    )
    monkeypatch.setenv("TS_SERVICE_ENVELOPE", "kserve")
    load = wire.Load("net", "1.0", str(model_dir), "mine.py", {"model": {}}, batch_size=2, threads=1)

    answers = Runtime.load(load).run([row(b'{"instances": [1]}'), row(b'{"instances": [2, 3]}')])

    assert [json.loads(answer.body) for answer in answers] == [{"predictions": [2]}, {"predictions": [3, 4]}]


def test_a_handler_may_put_itself_into_an_envelope() -> None:
    class Own:
        def handle(self, data: list[Any], context: Context) -> Any:
            return JSONEnvelope(self.answer).handle(data, context)

        def answer(self, data: list[Any], context: Context) -> list[Any]:
            return [each * 2 for each in data]

    own = Own()
    context = context_of(Path("/"))

    answers = Runtime(EntryPoint(own, own.handle), context).run([row(b'{"instances": [1]}'), row(b'{"instances": []}')])

    assert [answer.body for answer in answers] == [b'{"predictions": [2]}', b'{"predictions": []}']
