"""Known clients over gRPC: what a key opens, and the code of each refusal."""

from pathlib import Path
from typing import Any

import pytest

from tests.extensions.grpc.client import HEALTH, INFERENCE, grpc_house, prediction
from tests.extensions.grpc.test_predictions import failure, until
from tests.kit.clients import FakeClient, FakeClients
from tsctl.daemon.core.job import Job, Reply
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos.messages import message_class, service

NAMES = ("mobile", "limited", "batch", "free")
OIP = SERVICES[0]


def known() -> FakeClients:
    return FakeClients(
        FakeClient("mobile", models=("one",)), FakeClient("limited", most=2, bytes=10),
        FakeClient("batch", low_priority=True), FakeClient("free"),
    )  # fmt: skip


def shown(key: str) -> dict[str, Any]:
    return {"metadata": (("authorization", f"Bearer {key}"),)} if key else {}


@pytest.mark.parametrize(
    ("key", "model", "code"),
    [
        pytest.param("", "one", "PERMISSION_DENIED", id="none"),
        pytest.param("guess", "one", "PERMISSION_DENIED", id="one that nobody has"),
        pytest.param("mobile", "one", "OK", id="for this model"),
        pytest.param("mobile", "other", "PERMISSION_DENIED", id="for another model"),
        pytest.param("mobile", "nothing", "PERMISSION_DENIED", id="for one that is not there, so that no name is told"),
        pytest.param("free", "other", "OK", id="for all"),
        pytest.param("secret", "other", "OK", id="a token"),
    ],
)
async def test_what_a_key_opens(tmp_path: Path, key: str, model: str, code: str) -> None:
    async with grpc_house(tmp_path, tokens=("secret",), clients=known()) as made:
        for name in ("one", "other"):
            await made.house.serve(name)

        call = made.call("Predictions", prediction(model, data=b"1"), **shown(key))

        if code == "OK":
            await made.settled(call)
        else:
            assert (await failure(made, call))[0] == code
        assert made.names == ([key] if key in NAMES else [])


@pytest.mark.parametrize("name", ["ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"])
async def test_the_description_of_a_model_is_for_its_clients(tmp_path: Path, name: str) -> None:
    async with grpc_house(tmp_path, clients=known()) as made:
        await made.house.serve("other")
        kind = next(each for each in service(OIP).methods if each.name == name).input_type.full_name
        request = message_class(kind)(name="other")

        await made.settled(made.call(name, request, OIP, **shown("free")))
        code, text = await failure(made, made.call(name, request, OIP, **shown("mobile")))

        assert code == "PERMISSION_DENIED"
        assert text == "The key of client `mobile` does not allow the model `other` (403)."


async def test_statistics_of_all_models_are_those_of_the_client(tmp_path: Path) -> None:
    async with grpc_house(tmp_path, clients=known()) as made:
        for name in ("one", "other"):
            await made.house.serve(name)

        told = await made.settled(made.call("ModelStatistics", None, OIP, **shown("mobile")))

        assert [each.name for each in told.model_stats] == ["one"]


@pytest.mark.parametrize(
    ("key", "names"),
    [
        pytest.param("", set(), id="none to strangers"),
        pytest.param("guess", set(), id="nor with a key that nobody has"),
        pytest.param("mobile", {"one"}, id="those of the key"),
        pytest.param("free", {"one", "other"}, id="all, where the key allows them"),
        pytest.param("secret", {"one", "other"}, id="all, with a token"),
    ],
)
async def test_the_list_of_health_names_the_models_of_the_client(tmp_path: Path, key: str, names: set[str]) -> None:
    async with grpc_house(tmp_path, tokens=("secret",), clients=known()) as made:
        for name in ("one", "other"):
            await made.house.serve(name)

        told = await made.settled(made.call("List", None, HEALTH, **shown(key)))

        assert set(told.statuses) - {"", INFERENCE} == names


async def test_beyond_its_rate_or_its_bytes_a_client_is_told_so(tmp_path: Path) -> None:
    limited = shown("limited")
    async with grpc_house(tmp_path, clients=known()) as made:
        await made.house.serve("one")
        for _ in range(2):
            await made.settled(made.call("Predictions", prediction("one", data=b"1"), **limited))

        code, text = await failure(made, made.call("Predictions", prediction("one", data=b"1"), **limited))

        assert code == "RESOURCE_EXHAUSTED" and "1 request a second, 2 at once" in text
        assert made.statuses == [200, 200, 429]
        larger = await failure(made, made.call("Predictions", prediction("one", a=b"123456", b=b"12345"), **limited))
        assert larger == ("RESOURCE_EXHAUSTED", "The body has 11 bytes; client `limited` may send 10 (413).")


async def test_a_key_that_is_revoked_while_the_message_comes_opens_nothing(tmp_path: Path) -> None:
    clients = known()
    async with grpc_house(tmp_path, clients=clients) as made:
        await made.house.serve("other")
        call = made.call_in_pieces("Predictions", **shown("mobile"))
        await until(lambda: made.calls.running == 1)

        clients.revoke("mobile")
        await call.write(prediction("other", data=b"1"))
        await call.done_writing()

        assert (await failure(made, call))[0] == "PERMISSION_DENIED"


async def test_a_handler_sees_no_key_and_the_clients_priority(tmp_path: Path) -> None:
    jobs: list[Job] = []

    def answer(job: Job) -> Reply:
        jobs.append(job)
        return Reply(200, b"")

    async with grpc_house(tmp_path, clients=known()) as made:
        made.house.engine.answer = answer
        await made.house.serve("one")
        for key in ("batch", "free"):
            await made.settled(made.call("Predictions", prediction("one"), **shown(key)))

    assert [job.low_priority for job in jobs] == [True, False]
    assert "authorization" not in {name for job in jobs for name, _ in job.headers}
