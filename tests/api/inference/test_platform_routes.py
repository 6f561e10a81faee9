"""The other ways to ask for a prediction: explanations, KServe, SageMaker; and the descriptions."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Job, Param

FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    asyncio.run(house.serve("m"))
    return house


def last_job(house: House) -> Job:
    return house.engine.workers[-1].batches[-1].jobs[-1]


def test_a_form_field_names_the_model_of_an_invocation(house: House) -> None:
    asyncio.run(house.serve("other"))

    peer = house.send("POST", "/invocations", b"model_name=other&data=cat", FORM)

    assert peer.statuses == [200]
    assert Param("data", "", b"cat") in last_job(house).params


@pytest.mark.parametrize(
    ("method", "target"), [("OPTIONS", "/"), ("GET", "/api-description"), ("OPTIONS", "/api-description")]
)
def test_the_api_describes_itself(house: House, method: str, target: str) -> None:
    document = json.loads(house.send(method, target).bodies[0])

    assert document["openapi"] == "3.0.1"
    assert {"/predictions/{model_name}", "/explanations/{model_name}/{model_version}", "/ping"} <= set(
        document["paths"]
    )
    operations = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(operations) == len(set(operations))


@pytest.mark.parametrize("target", ["/predictions/m", "/explanations/m", "/v1/models/m:predict", "/models/m/invoke"])
def test_a_model_is_described_without_being_run(house: House, target: str) -> None:
    document = json.loads(house.send("OPTIONS", target).bodies[0])

    assert "/predictions/m" in document["paths"]
    assert not any(worker.batches for worker in house.engine.workers)
