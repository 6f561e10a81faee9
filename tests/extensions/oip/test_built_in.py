"""Requests of the protocol to built-in handlers: one input, `data`, and the answer as one output of JSON text."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Job, Param, Reply
from tsctl.handlers.sdk.built_in import declaration_of

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
