"""Which versions have a cache, and what is told of it."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.core.errors import InvalidModel
from tsctl.daemon.core.job import Reply
from tsctl.daemon.extensions.cache import limits_of
from tsctl.daemon.extensions.cache.answers import cache_of
from tsctl.daemon.models.registrar import Registration
from tsctl.extensions.cache import COMMAND_LINE

CONFIG = "cache: {seconds: 60, bytes: 1MiB}"


async def ask(house: House, body: bytes = b"x", *headers: str) -> Any:
    answer = await house.ask("POST", "/predictions/m", body, *headers)
    house.clock.advance(1.0)
    return answer


async def test_a_version_without_the_setting_has_none_and_nobody_watches_its_requests(tmp_path: Path) -> None:
    model = await House(tmp_path).serve("m")

    assert cache_of(model) is None
    assert model.watchers == ()


async def test_an_explanation_is_another_request(house: House) -> None:
    await house.serve("m", config=CONFIG)
    await ask(house)

    await house.ask("POST", "/explanations/m", b"x")

    assert len(jobs_of(house)) == 2


async def test_a_version_with_sequences_has_none_since_its_answers_depend_on_them(tmp_path: Path) -> None:
    model = await House(tmp_path).serve("m", config=f"{CONFIG}\nsequenceBatching: true")

    assert cache_of(model) is None


async def test_hits_are_described_and_measured(house: House) -> None:
    model = await house.serve("m", config=CONFIG)
    for body in (b"x", b"x", b"y"):
        await ask(house, body)

    _, (document,) = await house.tell("GET", "/models/m")
    metrics = (await house.ask("GET", "/metrics")).body.decode()

    kept = cache_of(model)
    assert kept is not None
    assert document["tsctl"]["cache"] == {
        "seconds": 60.0, "bytes": 1048576, "answers": 2, "bytesKept": kept.bytes, "hits": 1, "shared": 0, "misses": 2,
    }  # fmt: skip
    assert 'tsctl_cache_hits_total{model="m",version="1.0"} 1.0' in metrics
    assert 'tsctl_cache_misses_total{model="m",version="1.0"} 2.0' in metrics
    ((title, text),) = COMMAND_LINE.described(document["tsctl"], 0.0)
    assert title == "cache"
    assert text.startswith("2 answers for 60 s, ") and text.endswith("33% of 3 requests")


async def test_answers_that_leave_before_their_time_are_an_event(tmp_path: Path) -> None:
    house = House(tmp_path, max_body=2_000_000)
    await house.serve("m", config=CONFIG)
    house.engine.answer = lambda job: Reply(200, bytes(700_000))

    await ask(house, b"x")
    await ask(house, b"y")

    (event,) = [each for each in house.registrar.events.after(0) if each.kind == "cache-full"]
    assert (event.model, event.version) == ("m", "1.0")


@pytest.mark.parametrize(
    "value",
    [
        "60", "{seconds: 60}", "{seconds: 0, bytes: 1}", "{seconds: 1, bytes: many}", "{seconds: true, bytes: 1}",
        "{seconds: 1, bytes: 1, more: 1}",
    ],
)  # fmt: skip
async def test_a_setting_that_is_no_cache_is_refused_with_what_is_one(house: House, value: str) -> None:
    house.put("m", config=f"cache: {value}")

    with pytest.raises(InvalidModel, match="seconds: 60, bytes: 64MiB"):
        await house.registrar.register(Registration(url="m"))


def test_bytes_may_have_a_unit() -> None:
    assert limits_of({"seconds": 1.5, "bytes": "2MiB"}) == (1.5, 2 * 1024**2)
    assert limits_of({"seconds": 60, "bytes": 100}) == (60.0, 100)


def jobs_of(house: House) -> list[Any]:
    return [job for worker in house.engine.workers for batch in worker.batches for job in batch.jobs]
