"""Bodies with a `Content-Encoding`: unpacked on every route, within bounds; any other coding is 415."""

import asyncio
import gzip
import random
import zlib
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.api.inference.unpack import ANY_RATIO, MOST_RATIO, STEP, Unpacked, unpack_steps
from tsctl.daemon.core.arena import Arena, Lease
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.places import pages
from tsctl.daemon.core.steps import finish
from tsctl.daemon.http.bounds.receiving import NoRoom, ReceiveBudget
from tsctl.daemon.http.messages import Request
from tsctl.daemon.models.version import ModelVersion

BODY = b'{"instances": [[1, 2, 3]]}'
ROUTES = (
    "/predictions/m", "/predictions/m/1.0", "/explanations/m", "/v1/models/m:predict", "/models/m/invoke",
    "/invocations", "/m/predict", "/v2/models/m/infer",
)  # fmt: skip


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, max_body=4 * STEP)


def serve(house: House) -> ModelVersion:
    return asyncio.run(house.serve("m"))


@pytest.mark.parametrize("target", ROUTES)
def test_a_packed_body_reaches_the_handler_unpacked_on_every_route(house: House, target: str) -> None:
    serve(house)
    packed = gzip.compress(BODY, mtime=0)

    house.send("POST", target, packed, "Content-Type: application/json", "Content-Encoding: gzip")

    job = house.last_job
    headers = {name.lower(): value for name, value in job.headers}
    assert [bytes(param.value) for param in job.params] == [BODY]
    assert "content-encoding" not in headers and headers["content-length"] == str(len(BODY))


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        pytest.param("x-gzip", gzip.compress(BODY, mtime=0), id="gzip's former name"),
        pytest.param("GZIP ", gzip.compress(BODY, mtime=0), id="in capitals"),
        pytest.param("gzip", gzip.compress(BODY[:5], mtime=0) + gzip.compress(BODY[5:], mtime=0), id="two, joined"),
        pytest.param("deflate", zlib.compress(BODY), id="deflate"),
        pytest.param("identity", BODY, id="none, by its name"),
        pytest.param("", BODY, id="an empty header"),
    ],
)
def test_codings_that_are_understood(house: House, coding: str, packed: bytes) -> None:
    serve(house)

    peer = house.send("POST", "/predictions/m", packed, f"Content-Encoding: {coding}")

    assert (peer.statuses, peer.bodies) == ([200], [BODY])


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_a_request_without_a_body_has_nothing_to_unpack(house: House, coding: str) -> None:
    serve(house)

    assert house.send("GET", "/predictions/m", b"", f"Content-Encoding: {coding}").statuses == [200]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(("br",), id="another coding"),
        pytest.param(("gzip, gzip",), id="one in another"),
        pytest.param(("gzip", "identity"), id="two headers"),
        pytest.param(("x" * 200,), id="a long name, which is cut"),
    ],
)
@pytest.mark.parametrize("target", ROUTES)
def test_any_other_coding_is_named_with_those_that_are_understood(
    house: House, target: str, headers: tuple[str, ...]
) -> None:
    serve(house)

    peer = house.send("POST", target, gzip.compress(BODY), *(f"Content-Encoding: {each}" for each in headers))

    (answer,) = peer.answers
    shown = ", ".join(headers)[:100]
    assert (answer.status, answer.headers["accept-encoding"]) == (415, "gzip, deflate")
    assert f"Content-Encoding is `{shown}`; gzip and deflate are understood" in answer.body.decode()
    assert not house.engine.workers[-1].batches


def test_the_coding_of_one_request_is_not_that_of_the_next_on_its_connection(house: House) -> None:
    serve(house)
    packed = gzip.compress(BODY, mtime=0)
    peer = house._server.connect()
    heads = [("Content-Encoding: gzip\r\n", packed), ("", BODY), ("Content-Encoding: gzip\r\n", packed)]
    for head, body in [heads[0], *heads]:  # the first two are alike: the second head is not parsed
        peer.send(
            f"POST /predictions/m HTTP/1.1\r\nHost: a\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        )

    assert peer.bodies == [BODY] * 4


@pytest.mark.parametrize(
    ("coding", "packed", "status", "reason"),
    [
        pytest.param("gzip", gzip.compress(bytes(5 * STEP), mtime=0), 413, "a decompressed body is", id="a bomb"),
        pytest.param("gzip", gzip.compress(BODY, mtime=0)[:-10], 400, "ends within its gzip data", id="cut off"),
        pytest.param("gzip", gzip.compress(BODY, mtime=0) + b"more", 400, "not gzip", id="more behind its end"),
        pytest.param("deflate", zlib.compress(BODY) + b"x", 400, "goes on after its deflate", id="behind deflate's"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_refused(
    house: House, coding: str, packed: bytes, status: int, reason: str
) -> None:
    await house.serve("m")

    told, document = await house.tell("POST", "/predictions/m", packed, f"Content-Encoding: {coding}")

    assert told == status and reason in document["message"]
    assert not house.engine.workers[-1].batches


async def test_a_large_body_is_unpacked_in_turns(house: House) -> None:
    await house.serve("m")
    content = random.Random(3).randbytes(3 * STEP + 1)

    peer = house.send("POST", "/predictions/m", gzip.compress(content, mtime=0), "Content-Encoding: gzip")
    assert not peer.statuses  # one step was not enough
    await house.until(lambda: peer.statuses)

    assert peer.bodies == [content] and house.turns.reading == 0


async def test_a_client_that_leaves_while_its_body_is_unpacked_asks_for_nothing(house: House) -> None:
    await house.serve("m")
    packed = gzip.compress(random.Random(3).randbytes(3 * STEP), mtime=0)

    house.send("POST", "/predictions/m", packed, "Content-Encoding: gzip").leave()
    await house.turns.finish()

    assert not house.engine.workers[-1].batches


async def test_what_a_small_body_unpacks_to_is_bounded_by_its_size(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=20_000_000)
    await house.serve("m")
    body = gzip.compress(b"[" + b"1," * (ANY_RATIO // 2) + b"1]", 1, mtime=0)

    status, document = await house.tell("POST", "/predictions/m", body, "Content-Encoding: gzip")

    assert status == 413
    assert f"bytes of gzip unpack to is {max(ANY_RATIO, MOST_RATIO * len(body))}." in document["message"]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_body_is_unpacked_where_it_stays(coding: str) -> None:
    arena = Arena(64 * STEP)
    content = random.Random(3).randbytes(3 * STEP + 1)
    packed = gzip.compress(content, mtime=0) if coding == "gzip" else zlib.compress(content)
    request = Request("POST", "/", [("content-encoding", coding)], packed, coding=coding)

    finish(unpack_steps(request, 60 * STEP, Unpacked(ReceiveBudget()), arena.take))

    assert isinstance(request.body, Lease) and bytes(request.body) == content
    assert arena.used == pages(len(content))


@pytest.mark.parametrize("told", [0, 2 * STEP, 4 * STEP, 2**32 - 1])
def test_a_size_that_is_a_lie_is_refused_and_leaves_nothing(told: int) -> None:
    arena = Arena(64 * STEP)
    packed = gzip.compress(bytes(3 * STEP), mtime=0)[:-4] + told.to_bytes(4, "little")
    request = Request("POST", "/", [("content-encoding", "gzip")], packed, coding="gzip")

    with pytest.raises(BadRequest, match="not gzip"):
        finish(unpack_steps(request, 60 * STEP, Unpacked(ReceiveBudget()), arena.take))

    assert arena.used == 0


async def test_a_body_that_is_unpacked_counts_as_received(tmp_path: Path) -> None:
    budget = ReceiveBudget(2 * STEP)
    request = Request(
        "POST", "/", [("content-encoding", "gzip")], gzip.compress(bytes(4 * STEP), mtime=0), coding="gzip"
    )
    unpacked = Unpacked(budget)
    steps = unpack_steps(request, 64 * STEP, unpacked)

    next(steps)
    assert budget.used == STEP
    with pytest.raises(NoRoom):
        list(steps)
    unpacked.end()

    assert budget.used == 0
