"""The answers that a worker writes, as the daemon reads them: bytes where the client wants them, or JSON."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extensions.tensors.drawn import nested, tensors
from tests.handlers.tensors.test_arrays import VALUES, pack
from tests.handlers.tensors.test_outputs import encoded
from tsctl.daemon.extensions.tensors.answers import parse_answer
from tsctl.daemon.model_settings.declarations import DATATYPES
from tsctl.handlers import wire
from tsctl.handlers.tensor_heads import ElementHeads, WantedTensor
from tsctl.handlers.tensors.datatypes import DTYPES
from tsctl.handlers.tensors.rows import in_bytes

ALL = ElementHeads([None], True, [], True)
LENGTH = "Inference-Header-Content-Length"


def answer_of(*outputs: Any, **more: Any) -> wire.Answer:
    body = json.dumps({"model_name": "m", "outputs": outputs, **more}, indent=2).encode()
    return wire.Answer(200, body, headers=[("Content-Type", "application/json"), ("X-Y", "z")])


def length_of(answer: wire.Answer) -> int | None:
    return next((int(value) for name, value in answer.headers if name == LENGTH), None)


def read(answer: wire.Answer) -> Any:
    """Return what the daemon reads of an answer, or why it reads nothing."""
    try:
        return parse_answer(answer.body, length_of(answer))
    except ValueError as error:
        return str(error)


@settings(max_examples=100)
@given(drawn=tensors(), flat=st.booleans())
def test_the_bytes_are_those_that_the_daemon_makes_of_the_json(drawn: Any, flat: bool) -> None:
    datatype, shape, values = drawn
    data = values if flat or not shape else nested(values, shape)
    output = {"name": "o", "datatype": datatype, "shape": shape, "data": data, "parameters": {"k": 1.5}}
    expected = read(answer_of(output, id="7", parameters={"p": "q"}))

    made = in_bytes(answer_of(output, id="7", parameters={"p": "q"}), ALL)

    assert read(made) == expected
    if values and not isinstance(expected, str) and datatype != "UINT64":  # of both sides of 2^63, NumPy makes floats
        assert length_of(made) is not None
        assert ("X-Y", "z") in made.headers and ("Content-Type", "application/octet-stream") in made.headers


@pytest.mark.parametrize("binary", [False, True], ids=["JSON", "bytes"])
@pytest.mark.parametrize("datatype", DATATYPES)
def test_the_outputs_of_a_handler_are_read_bit_for_bit(datatype: str, binary: bool) -> None:
    values = [b"a", "é".encode()] if datatype == "BYTES" else VALUES[datatype]
    answer = encoded(
        np.array(values, DTYPES[datatype]), {"name": "o", "datatype": datatype, "shape": [2]}, binary=binary
    )

    (sent,) = read(answer).outputs

    assert (sent.name, sent.datatype, sent.shape, sent.data) == ("o", datatype, (2,), pack(datatype, values))


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.sampled_from(["", "é", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(
    datatype=st.sampled_from([*DATATYPES, "FLOAT"]),
    shape=st.lists(st.integers(-1, 3), max_size=2) | anything,
    data=anything | st.lists(st.sampled_from([1, 2**31, -1, 1e39, 70000, 3.4e38, 65519, 65520]), max_size=3),
)
def test_what_is_no_tensor_stays_for_the_daemon_to_name(datatype: str, shape: Any, data: Any) -> None:
    output = {"name": "o", "datatype": datatype, "shape": shape, "data": data}
    expected = read(answer_of(output))

    assert read(in_bytes(answer_of(output), ALL)) == expected


@pytest.mark.parametrize(
    "answer",
    [
        wire.Answer(200, b'{"cat": 0.9}'),
        wire.Answer(200, b"[1]"),
        wire.Answer(200, b'{"outputs": [{"name": "o"}]}'),
        wire.Answer(200, b'{"outputs": 7}'),
        wire.Answer(200, b"\xff\xd8"),
        wire.Answer(200, b""),
        wire.Answer(503, b'{"outputs": []}', error="InternalServerException"),
    ],
    ids=lambda answer: answer.body.decode("latin-1"),
)
def test_any_other_answer_stays(answer: wire.Answer) -> None:
    before = wire.encode(wire.Done(1, [answer], 0.0))

    assert wire.encode(wire.Done(1, [in_bytes(answer, ALL)], 0.0)) == before


def test_only_the_outputs_that_are_wanted_so_become_bytes() -> None:
    outputs = [{"name": name, "datatype": "INT8", "shape": [1], "data": [number]} for number, name in enumerate("abc")]
    heads = ElementHeads([None], True, [WantedTensor("a", False), WantedTensor("b", True)], False)

    made = in_bytes(answer_of(*outputs), heads)

    head = json.loads(made.body[: length_of(made)])
    assert [("data" in each, each.get("parameters")) for each in head["outputs"]] == [
        (True, None), (False, {"binary_data_size": 1}), (True, None),
    ]  # fmt: skip
    assert made.body[length_of(made) :] == b"\x01"
    unread = wire.Answer(200, b'{"outputs": [')
    assert in_bytes(unread, ElementHeads([None], True, [WantedTensor("a", False)], False)) is unread
