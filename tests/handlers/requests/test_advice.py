"""An error for `curl -d TEXT` says how to send the body."""

from pathlib import Path

import pytest

from tests.handlers.samples import context_of, row
from tsctl.handlers import wire
from tsctl.handlers.runtime.failures import advice_for
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.context import Context
from tsctl.handlers.sdk.errors import PredictionException, UnreadablePayload
from tsctl.handlers.sdk.loader import EntryPoint

FORM = ("Content-Type", "application/x-www-form-urlencoded")
ADVICE = (
    ". The body came as a form without a field, which is how `curl -d` sends it: add -H 'Content-Type: text/plain' or"
    " -H 'Content-Type: application/json', or send it with -T FILE."
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(KeyError("body"), (503, f"Prediction failed: KeyError: 'body' (Request r0){ADVICE}"), id="raises"),
        pytest.param(UnreadablePayload("no image"), (400, f"no image (Request r0){ADVICE}"), id="cannot read it"),
        pytest.param(PredictionException("mine", 422), (422, "mine"), id="says what it means"),
    ],
)
def test_a_handler_that_fails_on_a_form_without_a_field(error: Exception, expected: tuple[int, str]) -> None:
    def handle(data: object, context: Context) -> object:
        raise error

    runtime = Runtime(EntryPoint(None, handle), context_of(Path("/")))

    [answer] = runtime.run([wire.Row("r0", [FORM], [])])

    assert (answer.status, answer.body.decode()) == expected


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(wire.Row("r0", [FORM], [("a", "", b"1")]), id="a form with a field"),
        pytest.param(wire.Row("r0", [("content-type", "application/json")], []), id="JSON"),
        pytest.param(row(b""), id="no type"),
    ],
)
def test_there_is_no_advice_for(other: wire.Row) -> None:
    assert advice_for(other) == ""


def test_the_name_of_the_header_is_in_any_case() -> None:
    assert advice_for(wire.Row("r0", [("content-type", f"{FORM[1]}; charset=UTF-8")], [("text", "", b"")])) == ADVICE
