"""A message's fields are counted before protobuf builds it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.grpc.protos.limits import (
    AT_ONCE,
    MOST_FIELDS,
    MOST_PARAMETERS,
    MOST_TEXT,
    UNCOUNTED,
    check_steps,
)
from tsctl.daemon.extensions.grpc.protos.messages import message_class
from tsctl.daemon.model_settings.declarations import MOST_RANK, MOST_TENSORS

INFER: Any = message_class("inference.ModelInferRequest")
PREDICT: Any = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
LONG = "x" * UNCOUNTED  # a shorter message cannot hold too much


def infer(**fields: Any) -> Any:
    return INFER(id=LONG, **fields)


def with_input(**fields: Any) -> Any:
    return infer(inputs=[{"name": "a", **fields}])


def parameters(count: int) -> dict[str, Any]:
    return {str(each): {"int64_param": 1} for each in range(count)}


WITHIN = {
    "inputs": lambda: infer(inputs=[{}] * MOST_TENSORS),
    "outputs": lambda: infer(outputs=[{}] * MOST_TENSORS),
    "raw contents": lambda: infer(raw_input_contents=[b""] * MOST_TENSORS),
    "parameters": lambda: infer(parameters=parameters(MOST_PARAMETERS)),
    "parameters of an input": lambda: with_input(parameters=parameters(MOST_PARAMETERS)),
    "dimensions": lambda: with_input(shape=[2**62] * MOST_RANK),
    "TorchServe's inputs": lambda: PREDICT(input={str(each): b"" for each in range(MOST_PARAMETERS)}),
    "a text": lambda: INFER(id="x" * MOST_TEXT),
    "bytes of TorchServe's inputs": lambda: PREDICT(input={"a": bytes(MOST_TEXT + 1)}),
    "bytes of a tensor": lambda: with_input(contents={"bytes_contents": [bytes(MOST_TEXT + 1)]}),
    "bytes": lambda: infer(raw_input_contents=[bytes(100_000)]),
}
BEYOND = {
    "inputs": lambda: infer(inputs=[{}] * (MOST_TENSORS + 1)),
    "outputs": lambda: infer(outputs=[{}] * (MOST_TENSORS + 1)),
    "raw contents": lambda: infer(raw_input_contents=[b""] * (MOST_TENSORS + 1)),
    "parameters": lambda: infer(parameters=parameters(MOST_PARAMETERS + 1)),
    "parameters of an output": lambda: infer(outputs=[{"parameters": parameters(MOST_PARAMETERS + 1)}]),
    "dimensions": lambda: with_input(shape=[2**62] * (10 * MOST_RANK + 1)),
    "TorchServe's inputs": lambda: PREDICT(input={str(each): b"" for each in range(MOST_PARAMETERS + 1)}),
    "fields in all": lambda: infer(inputs=[{"parameters": parameters(64)}] * (MOST_FIELDS // 64)),
}


@pytest.mark.parametrize("name", WITHIN)
def test_as_many_as_may_be_are_read(name: str) -> None:
    message = WITHIN[name]()

    finish(check_steps(message.DESCRIPTOR, message.SerializeToString()))


@pytest.mark.parametrize("name", BEYOND)
def test_one_too_many_is_refused(name: str) -> None:
    message = BEYOND[name]()

    with pytest.raises(BadRequest, match="The message has more than "):
        finish(check_steps(message.DESCRIPTOR, message.SerializeToString()))


def test_many_fields_are_counted_in_slices() -> None:
    message = PREDICT(model_name=LONG)
    written = message.SerializeToString() + b"\x78\x01" * (MOST_FIELDS - 1)  # of a field that nobody knows

    assert len(list(check_steps(message.DESCRIPTOR, written))) == MOST_FIELDS // AT_ONCE


LONG_TEXTS = {
    "id": lambda text: INFER(id=text),
    "name of an output": lambda text: INFER(outputs=[{"name": text}]),
    "name of a parameter": lambda text: INFER(parameters={text: {"int64_param": 1}}),
    "parameter": lambda text: with_input(parameters={"a": {"string_param": text}}),
    "name of TorchServe's input": lambda text: PREDICT(input={text: b""}),
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_a_long_text_is_refused_before_protobuf_copies_it(name: str) -> None:
    message = LONG_TEXTS[name]("x" * (MOST_TEXT + 1))

    with pytest.raises(BadRequest, match=f"The text `[a-z_]+` of the message has {MOST_TEXT + 1} bytes"):
        finish(check_steps(message.DESCRIPTOR, message.SerializeToString()))


@given(st.binary(max_size=40))
def test_what_protobuf_parses_is_no_error(data: bytes) -> None:
    from google.protobuf.message import DecodeError

    around = INFER(id=LONG).SerializeToString()
    try:
        INFER.FromString(data + around)
    except DecodeError:
        return

    finish(check_steps(INFER.DESCRIPTOR, data + around))
