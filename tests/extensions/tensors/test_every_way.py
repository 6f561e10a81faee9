"""One tensor is the same for a handler whichever way it comes, and the same as nested lists in JSON.

From the request of each protocol (`ways_of` in tests/extensions/NAME/tensor_ways.py) to the handler, without processes.
"""

import json
import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given, settings

from tests.extensions.tensors.drawn import nested, tensors
from tests.handlers.samples import context_of
from tests.handlers.typed.calls import close_all, runtime_of
from tests.kit.build import make_model
from tests.kit.shelf import modules
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.job import Param
from tsctl.daemon.extensions.tensors.elements import pack
from tsctl.daemon.extensions.tensors.forms import InferRequest, Tensor
from tsctl.daemon.extensions.tensors.prepared_request import prepare, typed_params
from tsctl.daemon.model_settings.declarations import DeclaredTensor
from tsctl.daemon.workers.stub import StubEngine
from tsctl.handlers import wire
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.sdk.built_in import declaration_of
from tsctl.handlers.sdk.loader import EntryPoint

Drawn = tuple[str, list[int], list[Any]]


def described(value: Any) -> dict[str, Any]:
    return {"dtype": str(value.dtype), "shape": list(value.shape), "values": repr(value.reshape(-1).tolist())}


def of_tensor(x: torch.Tensor) -> dict[str, Any]:
    return described(x)


def of_tensors(x: list[torch.Tensor]) -> list[dict[str, Any]]:
    return [described(each) for each in x]


def of_array(x: np.ndarray) -> dict[str, Any]:
    x += 0  # writable
    return described(x)


def of_float32(x: npt.NDArray[np.float32]) -> dict[str, Any]:
    return described(x)


def of_float64s(x: list[npt.NDArray[np.float64]]) -> list[dict[str, Any]]:
    return [described(each) for each in x]


def of_int64(x: npt.NDArray[np.int64]) -> dict[str, Any]:
    return described(x)


def of_whole(x: npt.NDArray[np.integer]) -> dict[str, Any]:
    return described(x)


def optional(x: torch.Tensor | None = None) -> str:
    return repr(x if x is None else described(x))


HINTS = (of_tensor, of_tensors, of_array, of_float32, of_float64s, of_int64, of_whole, optional)


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    close_all()


def requests_of(name: str, datatype: str, shape: Sequence[int], values: Sequence[Any]) -> dict[str, InferRequest]:
    """Return the request of one tensor, as each protocol's reader has read it."""
    data = pack(datatype, values)
    tensor: dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(shape)}
    return {
        way: request for each in modules("tensor_ways") for way, request in each.ways_of(tensor, data, values).items()
    }


def exact(datatype: str, values: Sequence[Any]) -> list[Any]:
    """Return the values as the datatype holds them: FP32 rounds."""
    return np.array(values, np.float32).tolist() if datatype in ("FP32", "BF16") else list(values)


def row_of(params: Sequence[Param], head: Any) -> wire.Row:
    """Return the row that a worker decodes of a job's frame."""
    row = wire.Row("r0", [], [(name, kind, bytes(value)) for name, kind, value in params], head)
    frame = wire.encode(wire.Predict(1, [row]))
    decoded = wire.decode_for_worker(memoryview(frame)[wire.LENGTH.size :])
    assert isinstance(decoded, wire.Predict)
    return decoded.rows[0]


def model_of(declared: wire.Declared | None, inputs: Sequence[DeclaredTensor] = ()) -> Any:
    clock = FakeClock()
    model = make_model(StubEngine(clock), clock, inputs=tuple(inputs))
    model.declared = declared
    return model


def check_every_way(
    runtime: Runtime, declared: wire.Declared | None, name: str, drawn: Drawn, as_json: tuple[str, Any]
) -> None:
    """Check that the handler answers each request of a tensor as it answers a parameter in JSON."""
    param, document = as_json
    plain = wire.Row("r0", [], [(param, "application/json", json.dumps(document).encode())])
    (expected,) = runtime.run([plain])

    for way, request in requests_of(name, *drawn).items():
        prepared = prepare(model_of(declared), request)
        (answer,) = runtime.run([row_of(prepared.params, prepared.head)])
        if drawn[0] == "BYTES" and expected.status == 400:  # in JSON they are texts, which the sentence names
            expected.body = answer.body
        assert answer == expected, way


@pytest.mark.parametrize("function", HINTS, ids=lambda function: function.__name__)
def test_an_argument_gets_what_nested_lists_in_json_are(function: Any) -> None:
    runtime = runtime_of(function)

    @settings(max_examples=30, deadline=None)
    @given(tensors())
    @example(("UINT64", [2], [1, 2**64 - 1]))
    @example(("UINT64", [1], [2**64 - 1]))
    @example(("UINT8", [], [7]))
    @example(("INT8", [2, 0, 3], []))
    @example(("FP16", [1], [-0.0]))
    @example(("BYTES", [1], ["1"]))
    def check(drawn: Drawn) -> None:
        datatype, shape, values = drawn
        check_every_way(runtime, runtime.declared, "x", drawn, ("x", nested(exact(datatype, values), shape)))

    check()


def echo(data: Any, context: Any) -> Any:
    return [repr([row, context.get_all_request_header(index)]) for index, row in enumerate(data or ())]


@pytest.mark.parametrize("decoded", ["true", "false"])
def test_the_base_handler_gets_nested_lists(monkeypatch: pytest.MonkeyPatch, decoded: str) -> None:
    monkeypatch.setenv("TS_DECODE_INPUT_REQUEST", decoded)
    runtime = Runtime(EntryPoint(None, echo), context_of(Path("/nowhere")))

    @settings(max_examples=30, deadline=None)
    @given(tensors())
    @example(("FP32", [], [0.1]))
    def check(drawn: Drawn) -> None:
        datatype, shape, values = drawn
        declared = declaration_of("base_handler")
        check_every_way(runtime, declared, "data", drawn, ("data", nested(exact(datatype, values), shape)))

    check()


@pytest.mark.parametrize("decoded", ["true", "false"])
def test_a_model_that_declares_nothing_gets_the_request_as_json(monkeypatch: pytest.MonkeyPatch, decoded: str) -> None:
    monkeypatch.setenv("TS_DECODE_INPUT_REQUEST", decoded)
    runtime = Runtime(EntryPoint(None, echo), context_of(Path("/nowhere")))

    @settings(max_examples=30, deadline=None)
    @given(tensors())
    def check(drawn: Drawn) -> None:
        datatype, shape, values = drawn
        document = {"inputs": [{"name": "a", "datatype": datatype, "shape": shape, "data": exact(datatype, values)}]}
        check_every_way(runtime, None, "a", drawn, ("body", document))

    check()


@pytest.mark.parametrize(
    ("datatype", "data"),
    [("FP32", struct.pack("<f", math.inf)), ("BYTES", b"\x01\0\0\0\xff")],
    ids=["infinite", "bytes"],
)
def test_what_json_cannot_hold_is_refused_alone(datatype: str, data: bytes) -> None:
    runtime = Runtime(EntryPoint(None, echo), context_of(Path("/nowhere")))
    rows = []
    for tensor in (Tensor("a", datatype, (1,), data, {}), Tensor("a", "INT8", (1,), b"\x05", {})):
        prepared = prepare(model_of(None), InferRequest("", {}, [tensor], [], False))
        rows.append(row_of(prepared.params, prepared.head))

    refused, answered = runtime.run(rows)

    assert (refused.status, refused.error, answered.status) == (400, "BadRequestException", 200)
    assert b", which JSON cannot hold: declare the model's `inputs`" in refused.body
    assert b"'data': [5]" in answered.body


def test_an_array_may_hold_what_json_cannot() -> None:
    runtime = runtime_of(of_array)
    tensor = Tensor("x", "FP64", (2,), struct.pack("<2d", math.nan, -math.inf), {})
    prepared = prepare(model_of(runtime.declared), InferRequest("", {}, [tensor], [], False))

    (answer,) = runtime.run([row_of(prepared.params, prepared.head)])

    assert b"[nan, -inf]" in answer.body


def test_many_empty_lists_are_not_made() -> None:
    tensor = Tensor("data", "FP32", (2**31, 0), b"", {})

    with pytest.raises(BadRequest, match="at most 100000 lists are made"):
        prepare(
            model_of(declaration_of("base_handler")), InferRequest("", {}, [tensor._replace(name="data")], [], True)
        )


class Untouchable:
    """Elements that nobody may read before a worker does."""

    def __len__(self) -> int:
        return 8


@pytest.mark.parametrize(
    ("declared", "inputs"),
    [
        (wire.Declared([wire.Input("data", "tensor")], batches=True), ()),
        (wire.Declared([wire.Input("data", "array")], batches=False), ()),
        (declaration_of("base_handler"), ()),
        (None, ()),
        (None, (DeclaredTensor("data", "FP32", (2,)),)),
    ],
    ids=["tensor", "array", "base_handler", "declares nothing", "declares its inputs"],
)
def test_the_daemon_never_reads_an_element(declared: Any, inputs: Any) -> None:
    data: Any = Untouchable()
    request = InferRequest("", {}, [Tensor("data", "FP32", (2,), data, {})], [], True)

    prepared = prepare(model_of(declared, inputs), request)

    assert prepared.params[-1].value is data


def of_uint8(x: npt.NDArray[np.uint8]) -> dict[str, Any]:
    return described(x)


def test_an_argument_may_have_the_tensors_own_type() -> None:
    runtime = runtime_of(of_uint8)
    assert runtime.declared is not None
    request = InferRequest("", {}, [Tensor("x", "UINT8", (2,), b"\x00\xff", {})], [], True)
    params, heads = typed_params(request, runtime.declared)

    (answer,) = runtime.run([row_of(params, heads)])

    assert json.loads(answer.body) == {"dtype": "uint8", "shape": [2], "values": "[0, 255]"}
