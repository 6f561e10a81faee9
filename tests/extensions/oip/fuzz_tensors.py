"""Inference requests and answers of the Open Inference Protocol over HTTP: read as claimed, or a named error.

The first byte says what the others are: an answer or a request in JSON, or one with a binary part after so many bytes.
"""

import json
from collections.abc import Iterator

from tests.lab.fuzz.targets import Target
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.oip.answers import values_of, write_answer
from tsctl.daemon.extensions.oip.requests import parse_steps
from tsctl.daemon.extensions.tensors.answers import parse_answer
from tsctl.daemon.extensions.tensors.declaration_check import check_request
from tsctl.daemon.extensions.tensors.forms import InferRequest
from tsctl.daemon.extensions.tensors.prepared_request import described_request
from tsctl.daemon.extensions.tensors.sizes import check_steps
from tsctl.daemon.model_settings.declarations import DeclaredTensor
from tsctl.handlers import wire
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.tensor_heads import ElementHeads, TensorHead
from tsctl.handlers.tensors.numbers import fields_of

_ANSWER, _JSON = 0, 1  # the first byte; any other is the length of the request's JSON
_BINARY_ANSWER = 128  # from here on, it is 128 more than that of an answer
_DECLARED = (DeclaredTensor("a", "INT32", (-1,)),)


def check(data: bytes) -> object:
    kind, rest = data[:1], data[1:]
    if kind == bytes([_ANSWER]):
        return _check_answer(rest, None)
    if kind >= bytes([_BINARY_ANSWER]):
        return _check_answer(rest, kind[0] - _BINARY_ANSWER)
    length = None if kind <= bytes([_JSON]) else kind[0]
    try:
        request = finish(parse_steps(rest, length))
    except BadRequest as error:
        assert str(error)
        return str(error)
    assert len({each.name for each in request.inputs}) == len(request.inputs), "two inputs have one name"
    for tensor in request.inputs:
        finish(check_steps(tensor.name, tensor.datatype, tensor.shape, tensor.data))
    _check_declared(request)
    row = wire.Row("r", [], [("body", "", memoryview(each)) for each in (described_request(request), *_data(request))])
    heads = [TensorHead(each.name, each.datatype, list(each.shape)) for each in request.inputs]
    try:
        document = json.dumps(fields_of(row, ElementHeads([None, *heads], document=True))["body"]).encode()
    except UnreadablePayload:
        return len(request.inputs)  # NaN, and bytes that are no text
    plain = InferRequest(request.id, request.parameters, request.inputs, [], False)
    read = finish(parse_steps(document))
    assert InferRequest(read.id, read.parameters, read.inputs, [], False) == plain
    return document


def _data(request: InferRequest) -> Iterator[bytes]:
    for each in request.inputs:
        assert isinstance(each.data, bytes)
        yield each.data


def _check_declared(request: InferRequest) -> None:
    try:
        check_request(request, _DECLARED, ())
    except BadRequest:
        return
    assert [(each.name, each.datatype, len(each.shape)) for each in request.inputs] == [("a", "INT32", 1)]


def _check_answer(data: bytes, length: int | None) -> object:
    try:
        answer = parse_answer(data, length)
    except ValueError as error:
        return str(error)
    body, head_length = write_answer(answer, lambda name: True)
    assert parse_answer(body, head_length) == answer
    try:
        for tensor in answer.outputs:
            values_of(tensor)
    except ValueError:
        return body
    again, _ = write_answer(answer, lambda name: False)
    assert parse_answer(again) == answer
    return again


_INPUT = b'{"inputs": [{"name": "a", "datatype": "INT32", "shape": [2], "data": [1, 2]}]}'
_HEAD = b'{"inputs":[{"name":"a","datatype":"INT32","shape":[1],"parameters":{"binary_data_size":4}}]}'
_BYTES = b'{"inputs":[{"name":"a","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":5}}]}'
_OUTPUT = b'{"model_name":"m","outputs":[{"name":"o","datatype":"FP32","shape":[1,2],"data":[[1,2.5]]}]}'
_BINARY = b'{"outputs":[{"name":"o","datatype":"BF16","shape":[2],"parameters":{"binary_data_size":4}}]}'
TARGET = Target(
    check,
    [
        bytes([_JSON]) + _INPUT,
        bytes([_JSON]) + _INPUT.replace(b"[1, 2]", b"[[1], [2]]").replace(b"[2]", b"[2, 1]", 1),
        bytes([_JSON]) + _INPUT.replace(b"INT32", b"UINT8").replace(b"1, 2", b"1, 300"),
        bytes([_JSON]) + _INPUT.replace(b"INT32", b"BF16").replace(b"1, 2", b"1e38, -0.0"),
        bytes([_JSON]) + _INPUT.replace(b"}]}", b'}], "id": "7", "parameters": {"k": 1}, "outputs": [{"name": "o"}]}'),
        bytes([len(_HEAD)]) + _HEAD + b"\x01\0\0\0",
        bytes([len(_HEAD)]) + _HEAD + b"\x01\0\0",
        bytes([len(_BYTES)]) + _BYTES + b"\x01\0\0\0x",
        # What once broke a claim: data that are no UTF-8.
        bytes([92]) + b'{"inputs":[{"name":"a","datatyp":"o","datatype":"BYTES","shape":[2,2],'
        b'"data":[["\xd5\xd3\xdd\xcfe9"]]}]}e"arameter\xa5\xde\xc5\x84\xdd\x9d\x96\x91\xa8ry_dat\x92',
        bytes([_ANSWER]) + _OUTPUT,
        bytes([_ANSWER]) + _OUTPUT.replace(b"FP32", b"BYTES").replace(b"[1,2.5]", b'["x","\\u00e9"]'),
        bytes([_BINARY_ANSWER + len(_BINARY)]) + _BINARY + b"\x80\x3f\xc0\xff",
        bytes([_BINARY_ANSWER + len(_BINARY)]) + _BINARY + b"\x80\x3f",
    ],
    [
        b'"datatype": "', b'"shape": [', b'"data": [', b'"binary_data_size": ', b"BOOL", b"UINT64", b"FP16", b"FP64",
        b"BYTES", b"1e400", b"18446744073709551616", b"NaN", b"null", b"[]", b"\xff\xff\xff\xff",
        b'"shared_memory_region": ',
    ],
)  # fmt: skip
