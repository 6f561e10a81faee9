"""Inference requests to a model that declares nothing: the body is the handler's, as long as it is what it claims."""

import gzip
import zlib
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Job, Param

REQUEST = b'{"inputs": [{"name": "a", "datatype": "INT32", "shape": [1], "data": [1]}]}'


def last_job(house: House) -> Job:
    return house.engine.workers[-1].batches[-1].jobs[-1]


@pytest.mark.parametrize(
    "kind",
    ["Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded", "Accept: */*"],
    ids=["JSON", "as curl says", "no type, as tritonclient"],
)
@pytest.mark.parametrize("target", ["/v2/models/m/infer", "/v2/models/m/versions/1.0/infer"])
async def test_json_reaches_the_handler_as_json(tmp_path: Path, target: str, kind: str) -> None:
    house = House(tmp_path)
    await house.serve("m")

    answer = await house.ask("POST", target, REQUEST, kind)

    assert (answer.status, answer.body) == (200, REQUEST)
    assert list(last_job(house).params) == [Param("body", "application/json", REQUEST)]
    assert last_job(house).unnamed is ("versions" not in target)


@pytest.mark.parametrize("body", [b"{", b'{"inputs": nul}', b"[" * 900, b'{"inputs": [1,]}'])
async def test_what_is_no_json_is_refused_and_counted(tmp_path: Path, body: bytes) -> None:
    house = House(tmp_path)
    model = await house.serve("m")

    status, document = await house.tell("POST", "/v2/models/m/infer", body, "Content-Type: application/json")

    assert (status, document["type"]) == (400, "BadRequestException")
    assert document["error"].startswith("The body is not JSON: ")
    assert model.metrics.codes == {400: 1}


@pytest.mark.parametrize(
    ("coding", "compressed"),
    [("gzip", gzip.compress(REQUEST, mtime=0)), ("deflate", zlib.compress(REQUEST))],
    ids=["gzip", "deflate"],
)
async def test_a_compressed_body_is_decompressed(tmp_path: Path, coding: str, compressed: bytes) -> None:
    house = House(tmp_path)
    await house.serve("m")

    answer = await house.ask("POST", "/v2/models/m/infer", compressed, f"Content-Encoding: {coding}")

    assert (answer.status, answer.body) == (200, REQUEST)


@pytest.mark.parametrize(
    ("coding", "body", "status", "reason"),
    [
        pytest.param("gzip", gzip.compress(bytes(100_000), mtime=0), 413, "a decompressed body is 10000", id="a bomb"),
        pytest.param("gzip", gzip.compress(REQUEST, mtime=0)[:-10], 400, "ends within its gzip data", id="cut off"),
        pytest.param("gzip", REQUEST, 400, "The body is not gzip: ", id="not compressed"),
        pytest.param("br", REQUEST, 415, "Content-Encoding is `br`; gzip and deflate are", id="another coding"),
    ],
)
async def test_a_body_that_cannot_be_decompressed_is_refused(
    tmp_path: Path, coding: str, body: bytes, status: int, reason: str
) -> None:
    house = House(tmp_path)
    await house.serve("m")

    told, document = await house.tell("POST", "/v2/models/m/infer", body, f"Content-Encoding: {coding}")

    assert told == status
    assert reason in document["error"]
