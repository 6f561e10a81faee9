"""A large form is read in turns: others are served meanwhile, and what happens to its request meanwhile counts."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.house import House
from tests.http.peer import Peer
from tsctl.daemon.api.inference.urlencoded import SLICE
from tsctl.daemon.core.job import Job
from tsctl.daemon.lifecycle.shutdown import Shutdown
from tsctl.daemon.models.request_watcher import RequestFacts

URLENCODED = "Content-Type: application/x-www-form-urlencoded"
MULTIPART = "Content-Type: multipart/form-data; boundary=b"
SLICES = 10
LARGE = b"a=" + b"%41" * (SLICES * SLICE // 3)
DECODED = b"A" * (SLICES * SLICE // 3)
MOST = 4 * 1024**2


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, max_body=MOST)


def jobs(house: House) -> list[Job]:
    """Every job that a worker was ever given."""
    return [job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs]


def post(house: House, body: bytes = LARGE, kind: str = URLENCODED, target: str = "/predictions/m", *more: str) -> Peer:
    return house.send("POST", target, body, kind, *more)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def answered(house: House, *peers: Peer) -> None:
    await house.until(lambda: all(peer.transport.closed or peer.answers for peer in peers))


def told(peer: Peer) -> tuple[int, str]:
    """Status and message of the only answer."""
    (answer,) = peer.answers
    return answer.status, str(json.loads(answer.body)["message"])


async def test_others_are_served_between_two_slices(house: House) -> None:
    await house.serve("m")
    large = post(house)
    await turns(SLICES // 2)
    small = post(house, b"a=1")

    assert (small.statuses, large.answers) == ([200], [])
    shorter = post(house, LARGE[: 2 * SLICE])
    await answered(house, shorter)
    assert not large.answers
    await answered(house, large)
    form = b"--b\r\nContent-Disposition: form-data; name=k\r\n\r\nv\r\n--b--\r\n"
    assert post(house, form, MULTIPART).statuses == [200], "in the same turn"


@pytest.mark.parametrize(
    "target",
    ["/predictions/m", "/predictions/m/1.0/x", "/explanations/m", "/v1/models/m:predict", "/v2/models/m/infer",
     "/models/m/invoke", "/invocations", "/invocations?model_name=m"],
)  # fmt: skip
async def test_every_route_reads_large_forms_in_turns(house: House, target: str) -> None:
    await house.serve("m")
    peer = post(house, target=target)
    assert not peer.answers, "it took one turn"
    await answered(house, peer)

    assert (peer.statuses, peer.bodies) == ([200], [DECODED])
    assert (house.turns.bytes, house.turns.reading) == (0, 0)


async def test_a_large_form_may_name_its_model(house: House) -> None:
    await house.serve("m")
    await house.serve("other")
    peers = [post(house, LARGE + b"&model_name=" + name, target="/invocations") for name in (b"other", b"none")]
    long = post(house, b"model_name=" + b"\xff" * 2000, target="/invocations")
    await answered(house, *peers, long)

    assert told(long) == (400, "model_name has 2000 bytes; at most 1024 are allowed.")

    assert [peer.statuses for peer in peers] == [[200], [404]]
    assert [bool(worker.batches) for worker in house.engine.workers] == [False, True]


@pytest.mark.parametrize("leave", [Peer.leave, Peer.finish])
async def test_of_a_client_that_leaves_nothing_more_is_read(house: House, leave: Callable[[Peer], None]) -> None:
    await house.serve("m")
    peer = post(house)
    await turns(3)
    leave(peer)
    await turns(3)

    assert house.turns.reading == 0
    assert (jobs(house), peer.answers) == ([], [])


async def test_the_time_of_a_request_counts_while_its_form_is_read(house: House) -> None:
    await house.serve("m")
    peer = post(house, LARGE, URLENCODED, "/predictions/m", "x-request-deadline-ms: 50")
    await turns(3)
    house.clock.advance(0.06)
    await answered(house, peer)

    sentence = "of the 50 ms that x-request-deadline-ms allows, 60 ms have gone while its body was read"
    assert told(peer) == (504, f"The request was not run: {sentence}. Allow more time, or add workers.")
    assert jobs(house) == []


async def test_a_form_is_answered_by_the_version_that_serves_when_it_is_read(house: House) -> None:
    await house.serve("m")
    await house.serve("m", "2.0")
    peer = post(house)
    await turns(3)
    house.registry.set_default("m", "2.0")
    await answered(house, peer)

    assert peer.statuses == [200]
    assert [len(worker.batches) for worker in house.engine.workers] == [0, 1]


async def test_forms_that_are_read_at_once_have_a_bound_together(house: House) -> None:
    await house.serve("m")
    house.turns._most_bytes = 2 * len(LARGE)
    peers = [post(house) for _ in range(3)]
    await answered(house, *peers)

    assert sorted(peer.statuses for peer in peers) == [[200], [200], [503]]
    house.turns._most_bytes = 10
    alone = post(house)
    await answered(house, alone)
    assert alone.statuses == [200], "whatever the bound"
    refused = next(peer for peer in peers if peer.statuses == [503])
    assert f"limit is {2 * len(LARGE)} bytes in total, and this one has {len(LARGE)}" in told(refused)[1]
    assert refused.answers[0].headers["retry-after"] == "1"


async def test_a_daemon_that_stops_reads_what_it_has_begun_to_read(house: House, tmp_path: Path) -> None:
    await house.serve("m")
    shutdown = Shutdown(30.0, tmp_path / "pid", supervised=False)
    peer = post(house)
    await turns(3)
    stopping = asyncio.ensure_future(shutdown.finish_forms(house.turns))
    await turns(3)
    assert not stopping.done()
    await answered(house, peer)
    await stopping

    assert peer.statuses == [200]


async def test_at_the_end_of_its_grace_time_it_refuses_what_it_has_not_read(house: House, tmp_path: Path) -> None:
    await house.serve("m")
    peer = post(house)
    await turns(3)
    await Shutdown(0.0, tmp_path / "pid", supervised=False).finish_forms(house.turns)
    await answered(house, peer)

    assert told(peer) == (503, "The daemon is being stopped: this request's body was not read completely.")


async def test_what_repeats_a_request_is_the_body_as_it_was_sent(house: House) -> None:
    await house.serve("m")
    model = await house.serve("r")
    seen: list[RequestFacts] = []

    class Watcher:
        def watch(self, job: Job, asked: RequestFacts) -> bool:
            seen.append(asked)
            return False

    model.watchers = (Watcher(),)
    peer = post(house, target="/predictions/r")
    await answered(house, peer)

    (asked,) = seen
    assert asked.repeated is not None
    assert bytes(asked.repeated[0].value) == LARGE
