"""What the Open Inference Protocol's routes tell about the server and its models."""

from pathlib import Path

import pytest

from tests.api.house import House

DECLARED = """
inputs: [{name: INPUT0, datatype: INT32, shape: [-1, 16]}, {name: names, datatype: BYTES, shape: [1], optional: true}]
outputs: [{name: OUTPUT0, datatype: INT32, shape: [-1, 16]}]
platform: pytorch_eager
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_the_server_tells_its_name_and_extensions(house: House) -> None:
    status, document = await house.tell("GET", "/v2")

    assert (status, document["name"]) == (200, "tsctl")
    assert "binary_tensor_data" in document["extensions"]


async def test_health_is_json(house: House) -> None:
    await house.serve("m")

    assert await house.tell("GET", "/v2/health/live") == (200, {"live": True})
    assert await house.tell("GET", "/v2/health/ready") == (200, {"ready": True})
    assert await house.tell("GET", "/v2/models/m/ready") == (200, {"name": "m", "ready": True})


async def test_the_server_is_not_ready_while_a_model_is_not(house: House) -> None:
    await house.serve("m", workers=0)

    assert await house.tell("GET", "/v2/health/live") == (200, {"live": True})
    assert await house.tell("GET", "/v2/health/ready") == (503, {"ready": False})
    assert await house.tell("GET", "/v2/models/m/ready") == (503, {"name": "m", "ready": False})
    assert await house.tell("GET", "/v2/models/m/versions/1.0/ready") == (503, {"name": "m", "ready": False})


async def test_the_server_is_not_ready_before_its_first_models_are_registered(house: House) -> None:
    house.started = False

    assert await house.tell("GET", "/v2/health/ready") == (503, {"ready": False})


async def test_a_model_that_declares_its_tensors_tells_them(house: House) -> None:
    await house.serve("m", config=DECLARED)

    assert await house.tell("GET", "/v2/models/m") == (
        200,
        {
            "name": "m",
            "versions": ["1.0"],
            "platform": "pytorch_eager",
            "inputs": [
                {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]},
                {"name": "names", "datatype": "BYTES", "shape": [1]},
            ],
            "outputs": [{"name": "OUTPUT0", "datatype": "INT32", "shape": [-1, 16]}],
        },
    )


async def test_a_model_that_declares_nothing_tells_empty_lists(house: House) -> None:
    await house.serve("m")

    status, document = await house.tell("GET", "/v2/models/m")

    assert (status, document["inputs"], document["outputs"]) == (200, [], [])


async def test_a_model_tells_all_its_versions_and_a_version_itself(house: House) -> None:
    await house.serve("m", "1.0")
    await house.serve("m", "2.0")

    assert (await house.tell("GET", "/v2/models/m"))[1]["versions"] == ["1.0", "2.0"]
    assert (await house.tell("GET", "/v2/models/m/versions/2.0"))[1]["versions"] == ["2.0"]


async def test_the_configuration_is_in_tritons_words(house: House) -> None:
    await house.serve("m", config=DECLARED, workers=2)

    _, document = await house.tell("GET", "/v2/models/m/config")

    assert document["max_batch_size"] == 0
    assert document["input"] == [
        {"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [-1, 16], "optional": False},
        {"name": "names", "data_type": "TYPE_STRING", "dims": [1], "optional": True},
    ]
    assert document["output"] == [{"name": "OUTPUT0", "data_type": "TYPE_INT32", "dims": [-1, 16]}]
    assert document["instance_group"] == [{"name": "m", "count": 2, "kind": "KIND_AUTO"}]


async def test_statistics_count_requests_batches_and_nanoseconds(house: House) -> None:
    await house.serve("m")
    house.engine.batch_time = lambda size: 0.25
    for _ in range(2):
        house.send("POST", "/predictions/m", b"1")
        house.clock.advance(0.25)

    (told,) = (await house.tell("GET", "/v2/models/m/stats"))[1]["model_stats"]

    assert (told["name"], told["version"], told["inference_count"]) == ("m", "1.0", 2)
    assert told["inference_stats"]["success"] == {"count": 2, "ns": 500_000_000}
    assert told["inference_stats"]["fail"] == {"count": 0, "ns": 0}
    assert told["last_inference"] > 1_700_000_000_000
    (all_of_them,) = (await house.tell("GET", "/v2/models/stats"))[1]["model_stats"]
    assert all_of_them | {"last_inference": 0} == told | {"last_inference": 0}  # two readings of two clocks


async def test_statistics_of_a_model_without_requests_are_zero(house: House) -> None:
    await house.serve("m")

    (told,) = (await house.tell("GET", "/v2/models/m/stats"))[1]["model_stats"]

    assert (told["inference_count"], told["last_inference"]) == (0, 0)


@pytest.mark.parametrize(
    "target", ["/v2/models/no", "/v2/models/no/ready", "/v2/models/no/config", "/v2/models/m/versions/9", "/v2/shared"]
)
async def test_an_error_has_the_members_of_both_protocols(house: House, target: str) -> None:
    await house.serve("m")

    status, document = await house.tell("GET", target)

    assert status == document["code"] == 404
    assert document["error"] == document["message"] != ""
    assert document["type"].endswith("Exception")


@pytest.mark.parametrize("target", ["/v2", "/v2/health/live", "/v2/models/m", "/v2/models/m/ready", "/v2/models/stats"])
async def test_what_is_told_is_asked_with_get(house: House, target: str) -> None:
    await house.serve("m")

    assert (await house.tell("POST", target))[0] == 405


async def test_a_model_that_is_being_registered_is_not_ready_yet(house: House) -> None:
    house.registry.expect("m")

    status, document = await house.tell("GET", "/v2/models/m/ready")

    assert (status, document["error"]) == (503, 'Model "m" is being registered. Try again later.')
