"""Requests of the protocol to built-in handlers: one input, `data`, and the answer as one output of JSON text."""

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.handlers.sdk.built_in import declaration_of
from tsctl.handlers.tensor_heads import ElementHeads, InferHead, TensorHead, WantedTensor
from tsctl.handlers.wire import Declared, Input

INFER = "/v2/models/m/infer"
IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(100)
LENGTH = "Inference-Header-Content-Length"


def last_job(house: House) -> Job:
    return house.engine.workers[-1].batches[-1].jobs[-1]


async def built_in(root: Path, handler: str = "image_classifier", config: str = "") -> House:
    house = House(root)
    model = await house.serve("m", config=config)
    model.learn(declaration_of(handler), ())
    return house


def written(data: Any = None, **more: Any) -> bytes:
    tensor = {"name": "data", "datatype": "BYTES", "shape": [1], **more}
    return json.dumps({"inputs": [tensor if data is None else tensor | {"data": data}]}).encode()


async def test_the_metadata_names_its_tensors(tmp_path: Path) -> None:
    house = await built_in(tmp_path)

    _, document = await house.tell("GET", "/v2/models/m")
    _, config = await house.tell("GET", "/v2/models/m/config")

    assert document["inputs"] == [{"name": "data", "datatype": "BYTES", "shape": [1]}]
    assert document["outputs"] == [{"name": "output", "datatype": "BYTES", "shape": [1]}]
    assert [(each["name"], each["data_type"], each["dims"]) for each in (*config["input"], *config["output"])] == [
        ("data", "TYPE_STRING", [1]), ("output", "TYPE_STRING", [1]),
    ]  # fmt: skip


async def test_an_image_reaches_the_handler_as_from_any_other_route(tmp_path: Path) -> None:
    house = await built_in(tmp_path)
    house.engine.answer = lambda job: Reply(200, b'{"cat": 0.9}', headers=[("Content-Type", "application/json")])
    element = len(IMAGE).to_bytes(4, "little") + IMAGE
    head = written(parameters={"binary_data_size": len(element)})

    status, document = await house.tell("POST", INFER, head + element, f"{LENGTH}: {len(head)}")

    assert list(last_job(house).params) == [Param("data", "", IMAGE)]
    assert (status, document["outputs"]) == (
        200, [{"name": "output", "datatype": "BYTES", "shape": [1], "data": ['{"cat": 0.9}']}],
    )  # fmt: skip


@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes], ids=["one line", "lines"])
async def test_an_image_in_json_is_base64(tmp_path: Path, encode: Any) -> None:
    house = await built_in(tmp_path)
    house.engine.answer = lambda job: Reply(200, b"{}")

    assert (await house.ask("POST", INFER, written([encode(IMAGE).decode()]))).status == 200

    assert list(last_job(house).params) == [Param("data", "", IMAGE)]


@pytest.mark.parametrize("text", ["iVBORw0KGgo", "a text", "A" * 100])
async def test_a_text_is_never_taken_for_base64(tmp_path: Path, text: str) -> None:
    house = await built_in(tmp_path, "text_classifier")

    await house.ask("POST", INFER, written([text]))

    assert list(last_job(house).params) == [Param("data", "", text.encode())]


async def test_numbers_reach_the_worker_of_the_base_handler_as_bytes(tmp_path: Path) -> None:
    house = await built_in(tmp_path, "base_handler")

    await house.ask("POST", INFER, written([[1.5, 2]], datatype="FP32", shape=[1, 2]))

    assert list(last_job(house).params) == [Param("data", "application/json", struct.pack("<2f", 1.5, 2.0))]
    assert last_job(house).infer == ElementHeads([TensorHead("data", "FP32", [1, 2])])


@pytest.mark.parametrize(
    ("body", "kind", "param"),
    [
        (IMAGE, "image/png", Param("body", "image/png", IMAGE)),
        (b'{"data": "aGk="}', "application/json", Param("body", "application/json", b'{"data": "aGk="}')),
        (b"[[1, 2]]", "application/json", Param("body", "application/json", b"[[1, 2]]")),
    ],
    ids=["an image", "JSON", "numbers"],
)
async def test_what_is_no_request_of_the_protocol_is_the_handlers_as_ever(
    tmp_path: Path, body: bytes, kind: str, param: Param
) -> None:
    house = await built_in(tmp_path)

    await house.ask("POST", INFER, body, f"Content-Type: {kind}")

    assert list(last_job(house).params) == [param]


@pytest.mark.parametrize("body", [b"a+text=1", b"data=x"])
async def test_predictions_read_a_body_as_ever(tmp_path: Path, body: bytes) -> None:
    for each in ("plain", "told"):
        (tmp_path / each).mkdir()
    plain, told = House(tmp_path / "plain"), await built_in(tmp_path / "told", "text_classifier")
    await plain.serve("m")

    for house in (plain, told):
        await house.ask("POST", "/predictions/m", body, "Content-Type: application/x-www-form-urlencoded")

    assert list(last_job(told).params) == list(last_job(plain).params)


async def test_the_batch_size_of_a_built_in_handler_stays(tmp_path: Path) -> None:
    house = House(tmp_path)
    model = await house.serve("m")
    before = model.settings

    model.learn(declaration_of("image_classifier"), ())

    assert model.settings is before


async def test_the_description_of_a_model_has_its_tensors(tmp_path: Path) -> None:
    house = await built_in(tmp_path)

    _, document = await house.tell("OPTIONS", "/predictions/m")
    told = document["paths"]["/v2/models/m/infer"]["post"]

    assert told["requestBody"]["content"]["application/json"]["example"] == {
        "inputs": [{"name": "data", "datatype": "BYTES", "shape": [1], "data": ["text"]}]
    }
    schema = told["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema["properties"]["outputs"]["items"]["oneOf"][0]["properties"]["name"]["enum"] == ["output"]


async def test_the_description_of_declared_numbers_has_an_example_that_the_model_takes(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.serve("m", config="inputs: [{name: a, datatype: FP32, shape: [-1, 3]}]")

    _, document = await house.tell("OPTIONS", "/predictions/m")
    content = document["paths"]["/v2/models/m/infer"]["post"]["requestBody"]["content"]
    example = content["application/json"]["example"]

    assert example == {"inputs": [{"name": "a", "datatype": "FP32", "shape": [1, 3], "data": [0, 0, 0]}]}
    assert (await house.ask("POST", INFER, json.dumps(example).encode())).status == 200


async def test_the_description_of_a_model_without_declaration_has_no_route_of_the_protocol(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.serve("m")

    _, document = await house.tell("OPTIONS", "/predictions/m")

    assert INFER not in document["paths"]


BOXES = Declared(
    [Input("values", "array", "", "FP32", [3])], batches=True, built_in=True,
    outputs=[Input("best", "array", "", "FP32", [1]), Input("where", "array", "", "INT64", [-1])],
)  # fmt: skip


async def with_outputs(root: Path, config: str = "") -> House:
    house = House(root)
    (await house.serve("m", config=config)).learn(BOXES, ())
    return house


def values(*wanted: str) -> bytes:
    tensor = {"name": "values", "datatype": "FP32", "shape": [3], "data": [1, 5, 2]}
    return json.dumps({"inputs": [tensor], "outputs": [{"name": each} for each in wanted]}).encode()


async def test_the_outputs_that_a_models_file_tells_are_in_the_metadata(tmp_path: Path) -> None:
    house = await with_outputs(tmp_path)

    _, document = await house.tell("GET", "/v2/models/m")

    assert document["inputs"] == [{"name": "values", "datatype": "FP32", "shape": [3]}]
    assert document["outputs"] == [
        {"name": "best", "datatype": "FP32", "shape": [1]}, {"name": "where", "datatype": "INT64", "shape": [-1]},
    ]  # fmt: skip


async def test_the_worker_answers_in_them(tmp_path: Path) -> None:
    house = await with_outputs(tmp_path)

    await house.ask("POST", INFER, values("where"))

    job = last_job(house)
    assert isinstance(job.infer, InferHead)
    assert job.infer.inputs == [TensorHead("values", "FP32", [3])]
    assert job.infer.outputs == [WantedTensor("where", False)]


async def test_an_output_that_the_file_does_not_tell_is_refused(tmp_path: Path) -> None:
    house = await with_outputs(tmp_path)

    status, document = await house.tell("POST", INFER, values("were"))

    assert (status, document["error"]) == (400, "Unknown output: were; the model returns best, where.")


async def test_the_archives_outputs_win(tmp_path: Path) -> None:
    house = await with_outputs(tmp_path, "outputs: [{name: best, datatype: FP32, shape: [1]}]\n")

    assert [each["name"] for each in (await house.tell("GET", "/v2/models/m"))[1]["outputs"]] == ["best"]
    assert (await house.ask("POST", INFER, values("where"))).status == 400


@pytest.mark.parametrize("name", ["values", "data"])
async def test_an_input_of_another_datatype_than_the_files_is_refused(tmp_path: Path, name: str) -> None:
    house = await with_outputs(tmp_path)
    tensor = {"name": name, "datatype": "FP64", "shape": [3], "data": [1, 5, 2]}

    status, document = await house.tell("POST", INFER, json.dumps({"inputs": [tensor]}).encode())

    assert (status, document["error"]) == (400, f"Input {name} is FP64; the model takes FP32.")
