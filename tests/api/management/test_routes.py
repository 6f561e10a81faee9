"""The management API: TorchServe's commands, statuses and sentences."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, said, sentence
from tsctl.daemon.api.management.describe import describe
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.daemon.workers.engine import LoadFailure

NO_METHOD = error(405, "MethodNotAllowedException", "Requested method is not allowed, please refer to API document.")
NO_RESOURCE = error(404, "ResourceNotFoundException", "Requested resource is not found, please refer to API document.")
NO_MODEL = error(404, "ModelNotFoundException", "Model not found: x")
NO_VERSION = error(404, "ModelVersionNotFoundException", "Model version: 9 does not exist for model: m")
UPDATING = sentence("Processing worker updates...", 202)


def tell(house: House, method: str, target: str, body: bytes = b"", *headers: str) -> tuple[int, Any]:
    return asyncio.run(house.tell(method, target, body, *headers))


def serve(house: House, *versions: str) -> None:
    async def serve_all() -> None:
        for version in versions or ("1.0",):
            await house.serve("m", version)

    asyncio.run(serve_all())


def test_registering_starts_no_workers_unless_asked(house: House) -> None:
    house.put("m")

    told = tell(house, "POST", "/models?url=m")

    assert said(told) == sentence(
        'Model "m" Version: 1.0 registered with 0 initial workers. Use scale workers API to add workers for the model.'
    )
    assert house.engine.workers == []


def test_registering_waits_for_the_workers(house: House) -> None:
    house.put("m")

    told = tell(house, "POST", "/models?url=m&initial_workers=2")

    assert said(told) == sentence('Model "m" Version: 1.0 registered with 2 initial workers')
    assert house.registry.find("m").pool.ready == 2


def test_registering_without_waiting_says_so(house: House) -> None:
    house.put("m")
    house.engine.load_time = 100.0

    told = tell(house, "POST", "/models?url=m&initial_workers=2&synchronous=false")

    assert said(told) == UPDATING
    assert house.registry.find("m").pool.wanted == 2


def test_registering_takes_a_json_body(house: House) -> None:
    house.put("m")
    overrides = {"url": "m", "model_name": "n", "initial_workers": 1, "batch_size": 4, "max_batch_delay": 20}
    overrides |= {"response_timeout": 3, "startup_timeout": 4, "batching": "greedy", "handler": "base_handler"}

    status, _ = tell(house, "POST", "/models", json.dumps(overrides).encode(), "Content-Type: application/json")

    assert status == 200
    model = house.registry.find("n")
    settings = model.settings
    assert (settings.batch_size, settings.max_delay, settings.policy) == (4, 0.02, "greedy")
    assert (settings.response_timeout, settings.startup_timeout) == (3.0, 4.0)
    assert house.engine.workers[0].spec.handler == "base_handler"


@pytest.mark.parametrize(
    ("query", "config", "workers"),
    [
        pytest.param("", "minWorkers: 2", 2, id="the archive says how many workers there are"),
        pytest.param("&initial_workers=1", "minWorkers: 2", 1, id="unless the command does"),
        pytest.param("&fallback_workers=3", "minWorkers: 2", 2, id="a fallback does not count then"),
        pytest.param("&fallback_workers=3", "", 3, id="but where nobody says"),
        pytest.param("&initial_workers=0&fallback_workers=3", "", 0, id="none is a number too"),
        pytest.param("&initial_workers=-1", "", 0, id="and minus one is none given"),
    ],
)
def test_how_many_workers_a_registration_starts(house: House, query: str, config: str, workers: int) -> None:
    house.put("m", config=config)

    tell(house, "POST", f"/models?url=m{query}")

    assert house.registry.find("m").pool.wanted == workers


def test_an_archive_file_is_unpacked_and_registered(house: House) -> None:
    packing = Packing(model_name="packed", version="2.0", handler="image_classifier")
    write_archive(packing, house.store)

    told = tell(house, "POST", "/models?url=packed.mar&initial_workers=1")

    assert said(told) == sentence('Model "packed" Version: 2.0 registered with 1 initial workers')


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        pytest.param("/models", error(400, "BadRequestException", "Parameter url is required."), id="no url"),
        pytest.param("/models?url=", error(404, "ModelNotFoundException", "empty url"), id="an empty url"),
        pytest.param("/models?url=../m", error(
            404, "ModelNotFoundException", "Relative path is not allowed in url: ../m"), id="a path that climbs"),
        pytest.param("/models?url=s3://m", error(
            404, "ModelNotFoundException", "Given URL s3://m does not match any allowed URL(s)"), id="a remote one"),
        pytest.param("/models?url=m&runtime=LSP", error(
            400, "BadRequestException", "Invalid RuntimeType value: LSP"), id="a foreign runtime"),
        pytest.param("/models?url=m&batch_size=0", error(
            400, "BadRequestException", "batch_size is '0'; expected a whole number of at least 1."),
            id="no batch"),
        pytest.param("/models?url=m&max_batch_delay=soon", error(
            400, "BadRequestException", "max_batch_delay is 'soon'; expected a number from 0 to 1e9."),
            id="no delay"),
        pytest.param("/models?url=m&batching=later", error(
            400, "BadRequestException", "batching is 'later'; expected one of auto, fixed, greedy."),
            id="no policy"),
    ],
)  # fmt: skip
def test_what_cannot_be_registered(house: House, target: str, answer: tuple[int, Any]) -> None:
    house.put("m")

    assert tell(house, "POST", target) == answer
    assert list(house.registry) == []


def test_a_missing_archive_is_not_found(house: House) -> None:
    status, document = tell(house, "POST", "/models?url=x.mar")

    assert (status, document["type"]) == (404, "ModelNotFoundException")
    assert document["message"].startswith("Model not found at: x.mar")


@pytest.mark.parametrize(("local_paths", "status"), [(True, 200), (False, 404)])
def test_a_path_outside_the_store_is_for_those_who_may(tmp_path: Path, local_paths: bool, status: int) -> None:
    (tmp_path / "daemon").mkdir()
    house = House(tmp_path / "daemon", local_paths=local_paths)
    outside = house.put("m").rename(tmp_path / "outside")

    assert tell(house, "POST", f"/models?url={outside}")[0] == status


def test_a_version_is_registered_once(house: House) -> None:
    serve(house)
    house.put("m", place="again")

    told = tell(house, "POST", "/models?url=again")

    assert told == error(409, "ConflictStatusException", "Model version 1.0 is already registered for model m")


def test_a_registration_whose_workers_fail_leaves_nothing(house: House) -> None:
    house.put("m")
    house.engine.load_failure = LoadFailure("ValueError: no", "Traceback: here")

    told = tell(house, "POST", "/models?url=m&initial_workers=1")

    message = "Failed to start workers for model m version: 1.0: ValueError: no\n\nTraceback: here"
    assert told == error(500, "InternalServerException", message)
    assert list(house.registry) == []


def test_a_registration_that_runs_out_of_memory_says_so(house: House) -> None:
    house.put("m")
    house.engine.load_failure = LoadFailure("MemoryError", out_of_memory=True)

    assert tell(house, "POST", "/models?url=m&initial_workers=1")[0] == 507


@pytest.mark.parametrize(
    ("target", "answer", "wanted"),
    [
        pytest.param("/models/m?min_worker=3", UPDATING, 3, id="more"),
        pytest.param("/models/m", UPDATING, 1, id="one, where nothing is said"),
        pytest.param("/models/m?min_worker=0", UPDATING, 0, id="none"),
        pytest.param("/models/m?min_worker=0&max_worker=5", UPDATING, 2, id="as many as there are"),
        pytest.param("/models/m?min_worker=3&synchronous=true", sentence("Workers scaled to 3 for model: m"), 3,
            id="and wait"),
        pytest.param("/models/m/1.0?min_worker=3&synchronous=true",
            sentence("Workers scaled to 3 for model: m, version: 1.0"), 3, id="of a version"),
        pytest.param("/models/m?min_worker=3&synchronous=true&model_version=1.0",
            sentence("Workers scaled to 3 for model: m, version: 1.0"), 3, id="of a version in the query"),
        pytest.param("/models/m?min_worker=2&max_worker=1",
            error(400, "BadRequestException", "max_worker cannot be less than min_worker."), 2,
            id="not less than none"),
        pytest.param("/models/m?min_worker=few", error(
            400, "BadRequestException", "min_worker is 'few'; expected a whole number of at least 0."), 2,
            id="not by words"),
        pytest.param("/models/x?min_worker=1", NO_MODEL, 2, id="not of an unknown model"),
        pytest.param("/models/m/9?min_worker=1", NO_VERSION, 2, id="not of an unknown version"),
    ],
)  # fmt: skip
def test_scaling(house: House, target: str, answer: tuple[int, Any], wanted: int) -> None:
    model = asyncio.run(house.serve("m", workers=2))

    assert tell(house, "PUT", target) == answer
    assert model.pool.wanted == wanted


def test_more_workers_than_cores_are_warned_of(house: House) -> None:
    warning = "9 workers share 8 cores and slow each other down; at most 8 would be faster"
    model = asyncio.run(house.serve("m", workers=1))

    status, document = tell(house, "PUT", "/models/m?min_worker=9&synchronous=true&warnings=true")

    assert (status, document["warning"]) == (200, warning)
    assert "warning" not in tell(house, "PUT", "/models/m?min_worker=9&synchronous=true")[1]  # TorchServe's clients
    assert describe(model)["tsctl"]["threads"] == {"cores": 8, "perWorker": 1, "warning": warning}


def test_several_models_with_all_cores_each_are_warned_of(house: House) -> None:
    warning = (
        "2 models share 8 cores with 16 threads, and slow each other down while they work at once;"
        " `tsctl set MODEL --threads 4` for each"
    )
    asyncio.run(house.serve("other", workers=1))
    house.put("m", place="m-1.0")

    _, registered = asyncio.run(house.tell("POST", "/models?url=m-1.0&initial_workers=1&warnings=true"))
    [described] = tell(house, "GET", "/models/other")[1]

    assert registered["warning"] == warning
    assert described["tsctl"]["threads"] == {"cores": 8, "perWorker": 8, "warning": warning}
    asyncio.run(house.tell("PUT", "/models/other?min_worker=0&synchronous=true"))
    assert tell(house, "GET", "/models/m")[1][0]["tsctl"]["threads"]["warning"] is None


def test_the_operators_number_of_threads_is_each_workers(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "16")

    model = asyncio.run(house.serve("m", workers=1))

    told = describe(model)["tsctl"]["threads"]
    assert told["perWorker"] == 16
    assert told["warning"] == "1 × 16 threads share 8 cores and slow each other down; OMP_NUM_THREADS is 16: unset it"


def test_scaling_reports_workers_that_fail(house: House) -> None:
    serve(house)
    house.engine.load_failure = LoadFailure("ValueError: no")

    told = tell(house, "PUT", "/models/m?min_worker=2&synchronous=true")

    message = "Failed to start workers for model m version: 1.0: ValueError: no"
    assert told == error(500, "InternalServerException", message)
    assert house.registry.find("m").pool.ready == 1


@pytest.mark.parametrize(
    ("target", "answer", "left"),
    [
        pytest.param("/models/m/2.0", sentence('Model "m" unregistered'), ["1.0"], id="a version"),
        pytest.param("/models/m", error(
            403, "InvalidModelVersionException", "Cannot remove default version for model m"), ["1.0", "2.0"],
            id="not the default, while others stay"),
        pytest.param("/models/x", NO_MODEL, ["1.0", "2.0"], id="not an unknown model"),
        pytest.param("/models/m/9", NO_VERSION, ["1.0", "2.0"], id="not an unknown version"),
    ],
)  # fmt: skip
def test_unregistering(house: House, target: str, answer: tuple[int, Any], left: list[str]) -> None:
    serve(house, "1.0", "2.0")

    assert tell(house, "DELETE", target) == answer
    assert [model.version for model in house.registry] == left


def test_unregistering_ends_the_workers(house: House) -> None:
    serve(house)
    model = house.registry.find("m")

    told = tell(house, "DELETE", "/models/m")

    assert told == sentence('Model "m" unregistered')
    assert model.pool.empty
    assert list(house.registry) == []


@pytest.mark.parametrize(
    ("target", "answer", "default"),
    [
        pytest.param("/models/m/2.0/set-default",
            sentence('Default version successfully updated for model "m" to "2.0"'), "2.0", id="another"),
        pytest.param("/models/m/9/set-default", error(
            404, "ModelVersionNotFoundException", "Model version 9 does not exist for model m"), "1.0", id="unknown"),
        pytest.param("/models/x/9/set-default", NO_MODEL, "1.0", id="of an unknown model"),
    ],
)  # fmt: skip
def test_setting_the_default(house: House, target: str, answer: tuple[int, Any], default: str) -> None:
    serve(house, "1.0", "2.0")

    assert tell(house, "PUT", target) == answer
    assert house.registry.find("m").version == default


async def names(house: House, query: str = "") -> tuple[list[str], str | None]:
    """A page of the listing: names and token."""
    _, document = await house.tell("GET", f"/models{query}")
    return [entry["modelName"] for entry in document["models"]], document.get("nextPageToken")


async def test_the_listing_has_default_versions_by_name(house: House) -> None:
    for name, version in (("b", "1.0"), ("a", "2.0"), ("a", "1.0")):
        await house.serve(name, version)

    told = await house.tell("GET", "/models")

    listed = [{"modelName": "a", "modelUrl": "a-2.0"}, {"modelName": "b", "modelUrl": "b-1.0"}]
    assert told == (200, {"models": listed})


@pytest.mark.parametrize(
    ("query", "page"),
    [
        pytest.param("?limit=3", (["a", "b", "c"], "3"), id="the first page"),
        pytest.param(
            "?limit=2&next_page_token=2", (["c", "d"], "4"), id="a page that ends at the last has a token too"
        ),
        pytest.param("?limit=3&next_page_token=3", (["d"], None), id="a page that is not full has none"),
        pytest.param("?next_page_token=4", ([], None), id="after the last there is nothing"),
        pytest.param("?limit=-2", (["a", "b", "c", "d"], None), id="a limit below zero is none"),
        pytest.param("?limit=2&next_page_token=-3", (["a", "b"], "2"), id="a token below zero is the first page"),
        pytest.param("?limit=1000", (["a", "b", "c", "d"], None), id="a page may be asked to be larger"),
    ],
)
async def test_the_listing_comes_in_pages(house: House, query: str, page: tuple[list[str], str | None]) -> None:
    for name in "dbca":
        await house.serve(name, workers=0)

    assert await names(house, query) == page


async def test_a_page_has_at_most_a_hundred(house: House) -> None:
    for number in range(101):
        await house.serve(f"m{number}", workers=0)

    listed, token = await names(house, "?limit=1000")

    assert (len(listed), token) == (100, "100")


@pytest.mark.parametrize(
    ("method", "target"), [("OPTIONS", "/"), ("GET", "/api-description"), ("OPTIONS", "/api-description")]
)
def test_the_api_describes_itself(house: House, method: str, target: str) -> None:
    house.manage_alone()

    status, document = tell(house, method, target)

    assert (status, document["openapi"]) == (200, "3.0.1")
    assert {"/models", "/models/{model_name}/{model_version}/set-default"} <= set(document["paths"])


@pytest.mark.parametrize(
    ("target", "versions"),
    [("/models/m", ["1.0"]), ("/models/m/2.0", ["2.0"]), ("/models/m/all", ["1.0", "2.0"])],
)
def test_describing(house: House, target: str, versions: list[str]) -> None:
    serve(house, "1.0", "2.0")

    status, document = tell(house, "GET", target)

    assert status == 200
    assert [described["modelVersion"] for described in document] == versions


@pytest.mark.parametrize(
    ("method", "target", "answer"),
    [
        pytest.param("GET", "/models/x", NO_MODEL, id="describing an unknown model"),
        pytest.param("GET", "/models/x/all", NO_MODEL, id="describing all of an unknown model"),
        pytest.param("GET", "/models/m/9", NO_VERSION, id="describing an unknown version"),
        pytest.param("GET", "/models/m/1.0/more", NO_RESOURCE, id="more than a version"),
        pytest.param("PUT", "/models/m/1.0/unset", NO_RESOURCE, id="a verb nobody knows"),
        pytest.param("POST", "/models/m", NO_METHOD, id="registering under a name"),
        pytest.param("DELETE", "/models", NO_METHOD, id="unregistering everything"),
        pytest.param("TRACE", "/models/m", NO_METHOD, id="an unknown method"),
        pytest.param("PATCH", "/models", NO_METHOD, id="changing everything"),
        pytest.param("PATCH", "/models/x?batch_size=2", NO_MODEL, id="changing an unknown model"),
        pytest.param("PATCH", "/models/m/9?batch_size=2", NO_VERSION, id="changing an unknown version"),
        pytest.param("GET", "/tsctl", NO_RESOURCE, id="nothing of ours"),
        pytest.param("GET", "/tsctl/x", NO_RESOURCE, id="none of ours"),
        pytest.param("GET", "/tsctl/status/x", NO_RESOURCE, id="more than ours"),
        pytest.param("POST", "/tsctl/status", NO_METHOD, id="changing ours"),
        pytest.param("GET", "/tsctl/worker", NO_RESOURCE, id="a worker of nothing"),
        pytest.param("GET", "/tsctl/worker/m/1.0/x", NO_RESOURCE, id="a worker of more than a version"),
        pytest.param("GET", "/tsctl/worker/x", NO_MODEL, id="a worker of an unknown model"),
    ],
)
def test_what_there_is_no_route_for(house: House, method: str, target: str, answer: tuple[int, Any]) -> None:
    serve(house)

    assert tell(house, method, target) == answer


def test_the_daemon_answers_for_itself(house: House) -> None:
    assert tell(house, "GET", "/tsctl/status") == (200, {"pid": 1})


@pytest.mark.parametrize(
    ("method", "query", "sentence"),
    [
        ("PUT", "min_workers=3", "Unknown parameter min_workers; did you mean `min_worker`?"),
        ("PUT", "min_worker=1&zebra=1", "Unknown parameter zebra."),
        ("DELETE", "model_version=2.0", "Unknown parameter model_version."),
    ],
)
def test_a_parameter_of_a_command_that_does_not_exist_is_refused(
    house: House, method: str, query: str, sentence: str
) -> None:
    """TorchServe passes it over: to 1 worker instead of 3, or with another version."""
    serve(house, "1.0")

    assert tell(house, method, f"/models/m?{query}") == error(400, "BadRequestException", sentence)
    assert house.registry.find("m").pool.wanted == 1


@pytest.mark.parametrize("query", ["min_worker=1&max_worker=1&timeout=-1&number_gpu=1&synchronous=true"])
def test_what_torchserves_clients_send_with_a_command_is_taken(house: House, query: str) -> None:
    serve(house, "1.0")

    assert tell(house, "PUT", f"/models/m?{query}")[0] == 200
    assert tell(house, "DELETE", "/models/m/1.0?synchronous=true&timeout=-1")[0] == 200


@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", "/workflows"), ("POST", "/workflows?url=a.war"), ("DELETE", "/workflows/a"), ("POST", "/wfpredict/a")],
)
def test_workflows_are_refused_by_name(house: House, method: str, target: str) -> None:
    status, document = tell(house, method, target)

    assert (status, document["type"]) == (404, "ResourceNotFoundException")
    assert document["message"].startswith("Workflows are not served: ")


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/models/m", 200),
        ("GET", "/models/m/all", 200),
        ("PUT", "/models/m?min_worker=2&synchronous=true", 200),
        ("PUT", "/models/m/1.0/set-default", 200),
        ("DELETE", "/models/m/1.0", 200),
    ],
)
def test_a_command_for_a_model_that_is_being_registered_waits_for_it(
    house: House, method: str, target: str, status: int
) -> None:
    async def run() -> tuple[int, list[int]]:
        house.registry.expect("m")
        peer = house.send(method, target)
        exchange = house.exchanges[-1]
        await asyncio.sleep(0)
        assert (peer.statuses, house.registry.expected) == ([], ["m"])
        await house.serve("m")
        house.registry.settle("m")
        await house.until(lambda: exchange.done)
        return len(house.registry.listeners), peer.statuses

    before = len(house.registry.listeners)

    assert asyncio.run(run()) == (before, [status])
    assert house.registry.expected == []


def test_a_command_for_a_model_that_could_not_be_registered_is_told_why(house: House) -> None:
    async def run() -> tuple[int, Any]:
        house.registry.expect("m")
        peer = house.send("GET", "/models/m")
        await asyncio.sleep(0)
        house.registry.settle("m", "the archive is broken")
        await house.until(lambda: peer.statuses)
        return peer.statuses[0], json.loads(peer.bodies[0])

    status, document = asyncio.run(run())

    assert (status, document["message"]) == (
        503, 'Model "m" could not be loaded at the start: the archive is broken',
    )  # fmt: skip
