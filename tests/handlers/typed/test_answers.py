"""Answers are encoded by what they are."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.handlers.device import DEVICE
from tests.handlers.typed.calls import ask, request
from tsctl.handlers.requests.rows import JSON, NPY, wanted_type
from tsctl.handlers.sdk.errors import NotSerialisable
from tsctl.handlers.typed.answers import encode_answer

documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(document=documents)
def test_a_document_that_is_answered_as_it_came_is_the_same_document(document: Any) -> None:
    def predict(value: Any) -> Any:
        return value

    [answer] = ask(predict, request(("body", "", json.dumps({"it": document}).encode())))

    assert answer.status == 200
    assert json.loads(answer.body) == {"it": document}


@pytest.mark.parametrize(
    ("value", "body"),
    [
        pytest.param({"a": np.float32(0.5), "b": [np.arange(2)]}, b'{"a":0.5,"b":[[0,1]]}', id="NumPy within a dict"),
        pytest.param(
            [torch.tensor([1.5], device=DEVICE), torch.tensor(True, device=DEVICE)],
            b"[[1.5],true]",
            id="tensors within a list",
        ),
        pytest.param(torch.tensor([1.0], requires_grad=True, device=DEVICE), b"[1.0]", id="a tensor with a gradient"),
        pytest.param(np.int64(3), b"3", id="a NumPy number"),
        pytest.param(None, b"null", id="None"),
        pytest.param(float("nan"), b"null", id="not a number"),
        pytest.param({1: 2}, b'{"1":2}', id="numbers as keys"),
    ],
)
def test_json_holds(value: Any, body: bytes) -> None:
    assert encode_answer(value) == (body, JSON)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.zeros(2, np.longdouble), "ndarray: objects of type longdouble cannot .* `array.astype(float)`"),
        ({"a": np.longdouble(1)}, "dict: objects of type longdouble cannot .* `float(value)`"),
        (torch.zeros(2, dtype=torch.complex64), "Tensor: objects of type complex cannot .* imaginary part"),
        (np.zeros(2, np.clongdouble), "ndarray: objects of type clongdouble cannot .* imaginary part"),
    ],
)
def test_a_number_that_json_lacks_is_refused_with_its_type_and_the_remedy(value: Any, told: str) -> None:
    with pytest.raises(NotSerialisable, match=told.replace("(", r"\(").replace(")", r"\)")):
        encode_answer(value)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", ""),
        ("*/*", ""),
        ("text/html, application/xml;q=0.9", ""),
        ("application/json", JSON),
        ("Application/X-NPY", NPY),
        ("application/json, application/x-npy", JSON),
        ("application/json;q=0.5, application/x-npy;q=0.8", NPY),
        ("application/x-npy;q=0, */*", ""),
        ("application/x-npy;q=x", ""),
    ],
)
def test_accept_names_the_form_of_an_array(accept: str, expected: str) -> None:
    assert wanted_type([("Host", "x"), ("accept", accept)]) == expected
