"""The other ways to ask for a prediction: explanations, KServe, SageMaker; and the descriptions."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.api.house import House, error
from tsctl.daemon.core.job import Job, Param

NO_RESOURCE = "Requested resource is not found, please refer to API document."
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    asyncio.run(house.serve("m"))
    return house


def last_job(house: House) -> Job:
    return house.engine.workers[-1].batches[-1].jobs[-1]


@pytest.mark.parametrize(
    ("target", "injected"),
    [
        ("/predictions/m", {"url_path": "", "explain": "False"}),
        ("/predictions/m/1.0/a/b", {"url_path": "a/b", "explain": "False"}),
        ("/explanations/m", {"url_path": "", "explain": "True"}),
        ("/explanations/m/1.0/a", {"url_path": "a", "explain": "True"}),
        ("/v1/models/m:predict", {"explain": "False"}),
        ("/v1/models/m:explain", {"explain": "True"}),
        ("/v2/models/m/infer", {"explain": "False"}),
        ("/v2/models/m/explain", {"explain": "True"}),
        ("/invocations", {}),
        ("/models/m/invoke", {}),
    ],
)
def test_each_route_runs_the_model_and_tells_the_handler_how(
    house: House, target: str, injected: dict[str, str]
) -> None:
    peer = house.send("POST", target, b"cat")

    headers = dict(last_job(house).headers)
    assert (peer.statuses, peer.bodies) == ([200], [b"cat"])
    assert {name: value for name, value in headers.items() if name in ("url_path", "explain")} == injected


@pytest.mark.parametrize(
    "target",
    [
        "/explanations", "/v1/models/m/1.0:predict", "/v2/models/m/train", "/v2/health", "/invocations/m",
        "/predict", "/api-description/x",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_route_is_none(house: House, target: str) -> None:
    peer = house.send("POST", target)

    assert (peer.statuses[0], json.loads(peer.bodies[0])) == error(
        404, "ResourceNotFoundException", NO_RESOURCE, target
    )


@pytest.mark.parametrize("target", ["/v1/models/m", "/v1/models/m:train"])
def test_what_kserve_asks_with_get_is_not_posted(house: House, target: str) -> None:
    peer = house.send("POST", target)

    sentence = "Requested method is not allowed, please refer to API document."
    assert (peer.statuses[0], json.loads(peer.bodies[0])) == error(405, "MethodNotAllowedException", sentence)


@pytest.mark.parametrize("target", ["/v1/models/no:predict", "/v2/models/no/infer", "/invocations?model_name=no"])
def test_an_unknown_model_is_named(house: House, target: str) -> None:
    peer = house.send("POST", target)

    assert (peer.statuses[0], json.loads(peer.bodies[0])) == error(
        404, "ModelNotFoundException", "Model not found: no", target
    )


def test_the_query_reaches_the_handler_of_an_invocation_but_not_of_a_prediction(house: House) -> None:
    house.send("POST", "/invocations?model_name=m&k=v", b"cat")
    invoked = last_job(house).params
    house.send("POST", "/predictions/m?k=v", b"cat")

    assert list(invoked) == [Param("body", "", b"cat"), Param("model_name", "", b"m"), Param("k", "", b"v")]
    assert list(last_job(house).params) == [Param("body", "", b"cat")]


@pytest.mark.parametrize(
    ("target", "unnamed"), [("/m/predict?topk=3", True), ("/m/1.0/predict?topk=3", False)], ids=["default", "version"]
)
def test_the_oldest_routes_run_the_model_with_the_query(house: House, target: str, unnamed: bool) -> None:
    house.send("POST", target, b"a")

    job = last_job(house)
    assert ([param.name for param in job.params], job.unnamed) == (["body", "topk"], unnamed)


@pytest.mark.parametrize("target", ["/m/predict/more", "/m/1.0/x/predict", "/m/explain", "/*/m/predict", "/predict"])
def test_what_only_looks_like_one_of_them_is_none(house: House, target: str) -> None:
    assert house.send("POST", target).statuses == [404]


def test_a_form_field_names_the_model_of_an_invocation(house: House) -> None:
    asyncio.run(house.serve("other"))

    peer = house.send("POST", "/invocations", b"model_name=other&data=cat", FORM)

    assert peer.statuses == [200]
    assert Param("data", "", b"cat") in last_job(house).params


def test_among_several_models_an_invocation_must_name_one(house: House) -> None:
    asyncio.run(house.serve("other"))

    peer = house.send("POST", "/invocations", b"cat")

    expected = error(400, "BadRequestException", "Parameter model_name is required.")
    assert (peer.statuses[0], json.loads(peer.bodies[0])) == expected


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
