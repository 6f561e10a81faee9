"""Parameters come from the query or a JSON body, and a wrong one is refused with its name and value."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.api.management.commands import Parameters
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.http.messages import Request, json_body
from tsctl.daemon.model_settings.kinds import Boolean, Duration, Integer, TimeSpan, ValueKind
from tsctl.daemon.model_settings.resources import Cpus, Size

JSON = [("Content-Type", "application/json")]
NO_NUMBERS: list[Any] = [-2, 7.5, True, [7], {}, "seven", "1_0", "9" * 5000]


def query(text: str) -> Parameters:
    return Parameters(Request("POST", f"/models?{text}", []))


def document(value: Any) -> Parameters:
    return Parameters(Request("POST", "/models", JSON, json_body(value)))


@pytest.mark.parametrize(
    "given",
    [
        query("url=a.mar&batch_size=8&max_batch_delay=2.5&synchronous=TRUE"),
        document({"url": "a.mar", "batch_size": 8, "max_batch_delay": 2.5, "synchronous": True}),
    ],
    ids=["the query", "a JSON body"],
)
def test_the_parameters_are_in(given: Parameters) -> None:
    assert (given.text("url"), given.read("batch_size", Integer())) == ("a.mar", 8)
    assert (given.read("max_batch_delay", Duration()), given.read("synchronous", Boolean())) == (2.5, True)
    assert given.flag("synchronous", False) is True


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8"])
def test_a_parameter_beside_a_json_body_is_refused_since_it_would_be_without_effect(content_type: str) -> None:
    headers = [("content-type", content_type)]
    assert Parameters(Request("POST", "/models", headers, b'{"url": "b"}')).text("url") == "b"
    for nothing in (b"", b"{}"):  # as Axios and Requests send it, which TorchServe passes over in PUT
        assert Parameters(Request("PUT", "/models?url=a", headers, nothing)).text("url") == "a"

    with pytest.raises(BadRequest, match=r"^The parameter handler is in the URL, beside a body"):
        Parameters(Request("POST", "/models?handler=h", headers, b'{"url": "b"}'))


def test_a_parameter_that_is_given_twice_is_refused() -> None:
    """TorchServe takes the first one."""
    with pytest.raises(BadRequest, match=r"^The parameter a is given 2 times"):
        query("b=1&a=1&a=1")


@pytest.mark.parametrize(
    ("content_type", "body", "remedy"),
    [
        ("application/x-www-form-urlencoded", b"min_worker=2&synchronous=true", "as a form.*`?min_worker=2`"),
        ("Application/X-WWW-Form-URLencoded; charset=utf-8", b"min_worker=2", "as a form.*`?min_worker=2`"),
        ("application/x-www-form-urlencoded", b'{"min_worker": 2}', "as a form.*send JSON with -H"),
        ("multipart/form-data; boundary=x", b"--x\r\n", "as a form.*`?NAME=VALUE`"),
        ("text/plain", b'{"min_worker": 2}', "as `text/plain`.*send JSON with -H"),
        ("", b'{"min_worker": 2}', "without a content type, .*send JSON with -H"),
    ],
)
def test_another_body_than_json_is_refused_and_never_without_effect(
    content_type: str, body: bytes, remedy: str
) -> None:
    with pytest.raises(BadRequest, match=f"The body came {remedy.replace('?', '[?]')}"):
        Parameters(Request("PUT", "/models/m?min_worker=1", [("Content-Type", content_type)], body))


@pytest.mark.parametrize("body", [b"[]", b"1", b'"url"', b"null", b"{", b"\xff", b"[" * 30_000])
def test_a_json_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest, match="JSON"):
        Parameters(Request("POST", "/models", JSON, body))


@pytest.mark.parametrize("given", [query(""), query("x="), document({}), document({"x": None}), document({"x": ""})])
def test_what_is_not_given_is_none(given: Parameters) -> None:
    assert (given.text("x"), given.read("x", Integer()), given.read("x", Boolean())) == (None, None, None)


@pytest.mark.parametrize("default", [True, False])
def test_a_flag_that_is_not_given_has_its_default(default: bool) -> None:
    assert query("").flag("x", default) is default


@pytest.mark.parametrize("value", ["false", "0", "1", "yes", ""])
def test_only_true_is_true(value: str) -> None:
    assert query(f"x={value}").flag("x", True) is False


@pytest.mark.parametrize("given", [query("x=-1"), document({"x": -1}), document({"x": "-1"}), document({"x": -1.0})])
def test_minus_one_means_not_given_where_clients_of_torchserve_send_it(given: Parameters) -> None:
    assert given.read("x", Integer(1), absent=True) is None
    assert given.read("x", Duration(), absent=True) is None
    with pytest.raises(BadRequest, match=r"^x is .*1.*; expected a whole number of at least 1\.$"):
        given.read("x", Integer(1))


@pytest.mark.parametrize(
    ("given", "number"),
    [
        pytest.param(query("x=0"), 0, id="0 is at least 0"),
        pytest.param(document({"x": "7"}), 7, id="text in JSON is read"),
        pytest.param(document({"x": 7.0}), 7, id="a float without a fraction is whole"),
    ],
)
def test_a_whole_number(given: Parameters, number: int) -> None:
    assert given.read("x", Integer()) == number


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        *((each, Integer(), "a whole number of at least 0") for each in NO_NUMBERS),
        (float("nan"), Integer(), "a whole number of at least 0"),
        ("1000000001", Integer(1), "at most 1000000000"),
        *((each, Duration(), "a number from 0 to 1e9") for each in (-0.5, True, [1], "soon", float("inf"), 10**400)),
        ("yes", Boolean(), "true or false"),
        (1, Boolean(), "true or false"),
    ],
    ids=lambda value: str(value)[:10],
)
def test_what_is_not_of_its_kind_is_refused_with_name_and_value(
    value: Any, kind: ValueKind, expected: str, absent: bool
) -> None:
    with pytest.raises(BadRequest) as caught:
        document({"x": value}).read("x", kind, absent=absent)

    assert str(caught.value) == f"x is {json.loads(json.dumps(value))!r}; expected {expected}."


@pytest.mark.parametrize("value", [1, True, ["a"], {"a": 1}])
def test_what_is_no_text_is_refused_with_name_and_value(value: Any) -> None:
    with pytest.raises(BadRequest, match=r"^x is .*; expected a string\.$"):
        document({"x": value}).text("x")


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=3))
def test_any_value_is_read_or_refused(value: Any) -> None:
    given = document({"x": value})
    for kind in (Integer(), Duration(), Boolean(), TimeSpan(), Size(), Cpus()):
        with suppress(BadRequest):
            given.read("x", kind, absent=True)
    with suppress(BadRequest):
        assert isinstance(given.text("x"), str | None)
