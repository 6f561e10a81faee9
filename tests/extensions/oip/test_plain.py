"""Inference requests to a model that declares nothing: the body is the handler's, as long as it is what it claims."""

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
