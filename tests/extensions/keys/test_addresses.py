"""Known clients at an address: whom a key opens what for, and what each refusal says."""

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.http.peer import Answer, Server
from tests.kit.build import make_config
from tests.kit.protocols import PROTOCOLS
from tests.kit.shelf import needs
from tsctl.daemon.api.guards import guard
from tsctl.daemon.config.endpoints import choose_endpoints
from tsctl.daemon.extensions.keys.known_clients import KnownClients, digest_of
from tsctl.daemon.lifecycle.sockets import bind_endpoints

KEYS = {
    "mobile": 'models = ["one", "sh*"]\n',
    "limited": "rate = 1\nburst = 2\nbytes = 10\n",
    "batch": 'priority = "low"\n',
    "free": "",
    "single": 'models = ["other"]\n',
    "none": "models = []\n",
}
Ask = Callable[..., Coroutine[Any, Any, Answer]]


@pytest.fixture
def ask(tmp_path: Path, house: House) -> Ask:
    """Sends a request behind the keys, and lets everything run until it is answered."""
    file = tmp_path / "keys.toml"
    tables = (f'[[client]]\nname = "{name}"\nsha256 = "{digest_of(name)}"\n{more}' for name, more in KEYS.items())
    file.write_text("".join(tables))
    config = make_config(tmp_path, inference_address="127.0.0.1:0")
    endpoint = choose_endpoints(config)[-1]
    (listening,) = bind_endpoints([endpoint])
    with listening:
        tokens, clients = house.kernel.tokens, KnownClients(file, house.clock)
        tokens.management, tokens.clients = "m", clients
        there = guard(endpoint, listening, config, tokens, clients, house.clock.now)
    server = Server(house.router_behind(there), admit=there.admit)

    async def ask(target: str, key: str = "", body: bytes = b"1234567", method: str = "POST", *headers: str) -> Answer:
        if not list(house.registry):
            for name in ("one", "other", "shared"):
                await house.serve(name)
        peer = server.connect()
        shown = [f"Authorization: Bearer {key}"] if key else []
        lines = [f"{method} {target} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *shown, *headers, "", ""]
        peer.send("\r\n".join(lines).encode() + body)
        await house.until(lambda: peer.transport.written)
        (answer,) = peer.answers
        return answer

    return ask


@pytest.mark.parametrize(
    ("target", "key", "status"),
    [
        pytest.param("/predictions/one", "", 401, id="a prediction without a key"),
        pytest.param("/predictions/one", "guess", 403, id="with a key that nobody has"),
        pytest.param("/predictions/one", "mobile", 200, id="of a model that the key allows"),
        pytest.param("/predictions/shared", "mobile", 200, id="of one that a pattern allows"),
        pytest.param("/predictions/other", "mobile", 403, id="of one that it does not allow"),
        pytest.param("/predictions/nothing", "mobile", 403, id="of one that is not there, so that no name is told"),
        pytest.param("/predictions/other", "free", 200, id="of any, with a key for all"),
        pytest.param("/predictions/other", "none", 403, id="of any, with a key for none"),
        pytest.param("/predictions/other", "m", 200, id="with the management token"),
        pytest.param("/v1/models/other:predict", "mobile", 403, id="by KServe's first protocol"),
        pytest.param("/v2/models/other/infer", "mobile", 403, id="by the Open Inference Protocol"),
        pytest.param("/models/other/invoke", "mobile", 403, id="by SageMaker's routes"),
        pytest.param("/invocations?model_name=other", "mobile", 403, id="where the query names it"),
        pytest.param("/invocations?model_name=nothing", "mobile", 403, id="of one that is not there, in the query"),
        pytest.param("/other/predict", "mobile", 403, id="by the old route"),
        pytest.param("/ping", "", 200, id="health needs no key"),
    ],
)
async def test_what_a_key_opens(ask: Ask, target: str, key: str, status: int) -> None:
    body = b"" if target == "/ping" else b"1234567"

    assert (await ask(target, key, body)).status == status


@pytest.mark.parametrize("name", ["other", "nothing"])
async def test_a_model_that_the_body_names_is_checked_and_nobody_learns_whether_it_is_there(
    ask: Ask, name: str
) -> None:
    form = b"--b\r\nContent-Disposition: form-data; name=model_name\r\n\r\n%b\r\n--b--\r\n" % name.encode()
    kind = "Content-Type: multipart/form-data; boundary=b"

    refused = [await ask("/invocations", "mobile", form, method, kind) for method in ("POST", "OPTIONS")]
    others = [await ask(target, "mobile", body) for target, body in (each.predict(name) for each in PROTOCOLS)]

    assert {each.status for each in (*refused, *others)} == {403}
    assert f"The key of client `mobile` does not allow the model `{name}` (403)." in refused[0].body.decode()


@pytest.mark.parametrize(("key", "status"), [("single", 200), ("mobile", 400), ("none", 400)])
async def test_without_a_name_the_only_model_is_that_of_the_key_and_no_other_is_told(
    ask: Ask, house: House, key: str, status: int
) -> None:
    await house.serve("other")
    if key == "single":
        await house.serve("one")

    answer = await ask("/invocations", key)

    assert answer.status == status
    assert b"Parameter model_name is required." in answer.body or status == 200


async def test_a_description_that_the_query_asks_for_is_for_the_models_clients(ask: Ask) -> None:
    told = [await ask("/invocations?model_name=other", key, b"", "OPTIONS") for key in ("mobile", "free")]

    assert [each.status for each in told] == [403, 200]


@pytest.mark.parametrize("target", [target for each in PROTOCOLS for target in each.describes("other")])
async def test_the_description_of_a_model_is_for_its_clients(ask: Ask, target: str) -> None:
    assert (await ask(target, "mobile", b"", "GET")).status == 403
    assert (await ask(target, "free", b"", "GET")).status != 403
    assert (await ask(target, "none", b"", "GET")).status == 403


@pytest.mark.parametrize("target", [target for each in PROTOCOLS for target in each.lists])
async def test_a_list_names_the_models_of_the_client(ask: Ask, target: str) -> None:
    listed = (await ask(target, "mobile", b"", "GET")).body

    assert b"one" in listed and b"shared" in listed and b"other" not in listed
    unlisted = (await ask(target, "none", b"", "GET")).body
    assert not any(name in unlisted for name in (b"one", b"shared", b"other"))


@needs("welcome")
@pytest.mark.parametrize(
    ("key", "names"),
    [
        pytest.param("", set(), id="none to strangers"),
        pytest.param("guess", set(), id="nor with a key that nobody has"),
        pytest.param("mobile", {"one", "shared"}, id="those of the key"),
        pytest.param("m", {"one", "other", "shared"}, id="all, with a token"),
    ],
)
async def test_the_page_at_the_root_names_the_models_of_the_client(ask: Ask, key: str, names: set[str]) -> None:
    answer = await ask("/", key, b"", "GET", "Accept: application/json")

    document = json.loads(answer.body)
    assert (answer.status, document["status"]) == (200, "alive")
    assert {each["name"] for each in document.get("models", [])} == names


async def test_the_metrics_name_all_clients_and_so_are_for_none(ask: Ask) -> None:
    assert (await ask("/metrics", "free", b"", "GET")).status == 403


@needs("prometheus")
async def test_the_metrics_are_for_the_management_token(ask: Ask) -> None:
    assert (await ask("/metrics", "m", b"", "GET")).status == 200


async def test_beyond_its_rate_a_client_is_told_when_to_come_again(ask: Ask, house: House) -> None:
    statuses = [(await ask("/predictions/one", "limited")).status for _ in range(3)]
    refused = await ask("/predictions/one", "limited")

    assert statuses == [200, 200, 429]
    assert refused.headers["retry-after"] == "1"
    assert b"Client `limited` may send 1 request a second, 2 at once (429): the next one in 1 s." in refused.body
    assert (await ask("/predictions/one", "free")).status == 200
    house.clock.advance(1.0)
    assert (await ask("/predictions/one", "limited")).status == 200


async def test_a_prediction_without_a_body_counts_too_and_a_refusal_by_its_reason(ask: Ask, house: House) -> None:
    assert [(await ask("/predictions/one", "limited", b"", "GET")).status for _ in range(3)] == [200, 200, 429]
    assert house.registry.find("one").metrics.refusals["client_rate"] == 1


async def test_a_body_may_have_so_many_bytes(ask: Ask) -> None:
    assert (await ask("/predictions/one", "limited", b"1" * 10)).status == 200
    refused = await ask("/predictions/one", "limited", b"1" * 11)

    assert refused.status == 413
    assert b"The body has 11 bytes; client `limited` may send 10" in refused.body


async def test_the_handler_sees_no_key_and_the_priority_of_the_client(ask: Ask, house: House) -> None:
    await ask("/predictions/one", "batch")
    await ask("/predictions/one", "free")

    jobs = [job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs]
    assert [job.low_priority for job in jobs] == [True, False]
    assert "authorization" not in {name.lower() for job in jobs for name, _ in job.headers}
