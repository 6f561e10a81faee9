"""An error for `curl -d TEXT` says how to send the body."""

import pytest

from tests.handlers.samples import row
from tsctl.handlers import wire
from tsctl.handlers.runtime.failures import advice_for

FORM = ("Content-Type", "application/x-www-form-urlencoded")
ADVICE = (
    ". The body came as a form without a field, which is how `curl -d` sends it: add -H 'Content-Type: text/plain' or"
    " -H 'Content-Type: application/json', or send it with -T FILE."
)


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
    form = wire.Row("r0", [("content-type", f"{FORM[1]}; charset=UTF-8")], [("text", "", b"")])
    assert advice_for(form) == ADVICE
