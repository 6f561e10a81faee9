"""What is told of a cache."""

from pathlib import Path
from typing import Any

from tests.api.house import House
from tsctl.daemon.core.job import Reply
from tsctl.daemon.extensions.cache import limits_of
from tsctl.extensions.cache import COMMAND_LINE

CONFIG = "cache: {seconds: 60, bytes: 1MiB}"


async def ask(house: House, body: bytes = b"x", *headers: str) -> Any:
    answer = await house.ask("POST", "/predictions/m", body, *headers)
    house.clock.advance(1.0)
    return answer


def test_describe_tells_how_many_requests_were_hits() -> None:
    document = {"seconds": 60.0, "bytes": 2**20, "answers": 2, "bytesKept": 512, "hits": 1, "shared": 0, "misses": 2}

    assert [*COMMAND_LINE.described({"cache": document}, 0.0)] == [
        ("cache", "2 answers for 60 s, 512 B of 1.0 MiB, 33% of 3 requests"),
    ]


async def test_answers_that_leave_before_their_time_are_an_event(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=2_000_000)
    await house.serve("m", config=CONFIG)
    house.engine.answer = lambda job: Reply(200, bytes(700_000))

    await ask(house, b"x")
    await ask(house, b"y")

    (event,) = [each for each in house.registrar.events.after(0) if each.kind == "cache-full"]
    assert (event.model, event.version) == ("m", "1.0")


def test_bytes_may_have_a_unit() -> None:
    assert limits_of({"seconds": 1.5, "bytes": "2MiB"}) == (1.5, 2 * 1024**2)
    assert limits_of({"seconds": 0.5, "bytes": 1}) == (0.5, 1)
