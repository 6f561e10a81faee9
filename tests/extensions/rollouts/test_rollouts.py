"""A rollout of a whole daemon on a fake clock: it goes on, goes back, is ended by commands, and survives a restart."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.api.house import House
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import PredictionFailed
from tsctl.daemon.core.job import Job, Reply
from tsctl.daemon.events.events import Events
from tsctl.daemon.extensions.rollouts.rollouts import Rollouts
from tsctl.daemon.extensions.rollouts.service import RolloutsService
from tsctl.daemon.models.routing.route import parse_route
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.stub import StubWorker

START = "/models/m/rollout?version=2.0&steps=50&every=10s&abort_if=errors%3E20%25"
compares = pytest.mark.skipif("shadowing" not in {each.name for each in EXTENSIONS}, reason="built without shadows")
FAILED = Reply(503, b"no luck", error=PredictionFailed.kind)


async def serving(tmp_path: Path) -> House:
    house = House(tmp_path)
    for version in ("1.0", "2.0"):
        await house.serve("m", version)
    house.registry.routes.random.seed(1)
    return house


async def ask(house: House, count: int) -> None:
    for _ in range(count):
        await house.ask("POST", "/predictions/m", b"x")


async def shown(house: House) -> Any:
    return (await house.tell("GET", "/models/m/rollout"))[1]["rollout"]


async def pass_time(house: House, seconds: int) -> None:
    """Let seconds pass, and each decision be carried out."""
    for _ in range(seconds):
        house.clock.advance(1.0)
        for task in list(house.service(RolloutsService).rollouts._tasks):
            await task


def kinds(house: House) -> list[str]:
    return [event.kind for event in house.registrar.events.after(0) if event.kind.startswith("rollout")]


def fail(house: House, version: str) -> None:
    """Let the handler of a version fail."""
    workers = house.registry.find("m", version).pool.workers

    def answer(job: Job) -> Reply:
        busy = [worker for worker in workers if any(job in batch.jobs for batch in worker.batches)]  # type: ignore[attr-defined]
        return FAILED if busy else Reply(200, b"x")

    house.engine.answer = answer


async def test_a_good_version_takes_over_step_by_step(tmp_path: Path) -> None:
    house = await serving(tmp_path)

    status, _ = await house.tell("POST", START)
    assert status == 200
    assert house.registry.routes.of("m") == parse_route("1.0=50 2.0=50")
    await pass_time(house, 15)
    assert (await shown(house))["waitsFor"].startswith("not shown yet: errors>20%"), "time alone shows nothing"
    await ask(house, 150)
    await pass_time(house, 2)
    assert house.registry.routes.of("m") == parse_route("2.0=100")
    await ask(house, 150)
    assert (await shown(house))["state"] == "stepping", "the second step has its time, too"
    await pass_time(house, 12)

    assert "m" not in house.registry.routes
    assert house.registry.find("m").version == "2.0"
    assert kinds(house) == ["rollout-started", "rollout-advanced", "rollout-promoted"]


async def test_a_bad_version_goes_back_by_itself_to_the_route_before(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.serve("m", "0.9")
    before = parse_route("1.0=90 0.9=10", "ip")
    await house.registrar.routes.set("m", before)
    fail(house, "2.0")

    await house.tell("POST", START)
    await ask(house, 60)
    await pass_time(house, 2)

    assert house.registry.routes.of("m") == before
    assert house.registry.find("m").version == "1.0"
    told = await shown(house)
    assert told["state"] == "aborted" and told["reason"].startswith("errors>20%: ")
    assert kinds(house) == ["rollout-started", "rollout-aborted"]


def hostile(house: House, times: int) -> None:
    """Let a client end requests by its own doing, again and again: by deadlines, by leaving, and by bad input."""
    house.engine.answer = lambda job: Reply(422, b"no image") if job.params[0].value == b"bad" else Reply(200, b"x")
    at_once, house.engine.batch_time = house.engine.batch_time, lambda size: 0.01
    for _ in range(times):
        house.send("POST", "/predictions/m", b"late", "x-request-deadline-ms: 1")
        house.send("POST", "/predictions/m", b"x", "x-request-deadline-ms: soon")
        house.send("POST", "/predictions/m", b"gone").leave()
        house.send("POST", "/predictions/m", b"bad")
        house.clock.advance(0.1)
    house.engine.batch_time = at_once


async def test_no_client_takes_a_good_version_back(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.tell("POST", START)

    hostile(house, 100)
    await pass_time(house, 2)

    assert "rollout-aborted" not in kinds(house)
    await ask(house, 150)
    await pass_time(house, 12)
    assert kinds(house) == ["rollout-started", "rollout-advanced", "rollout-promoted"], "good answers count as ever"


async def test_no_client_hides_a_bad_version(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.tell("POST", START)
    house.engine.answer = lambda job: Reply(422, b"no image")

    await ask(house, 300)
    await pass_time(house, 12)

    assert kinds(house) == ["rollout-started"], "requests that were rejected are no good answers"
    fail(house, "2.0")
    await ask(house, 60)
    await pass_time(house, 2)
    assert (await shown(house))["state"] == "aborted"


async def test_a_version_that_cannot_be_loaded_any_more_goes_back(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.tell("POST", START)

    house.engine.load_failure = LoadFailure("its files are gone")
    (worker,) = house.registry.find("m", "2.0").pool.workers
    cast(StubWorker, worker).die()
    await pass_time(house, 2)

    told = await shown(house)
    assert (told["state"], told["reason"]) == ("aborted", "no worker can load the version: its files are gone")


@compares
async def test_a_comparison_comes_first_and_ends_it_if_answers_differ(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    asked = START.replace("abort_if", "compare=true&allow_effects=true&abort_if") + ",differs%3E20%25"
    status, _ = await house.tell("POST", asked)
    assert (status, (await shown(house))["state"]) == (200, "comparing")
    fail(house, "2.0")

    for _ in range(30):
        await ask(house, 1)
        house.clock.advance(0.1)
    await pass_time(house, 2)

    told = await shown(house)
    assert told["state"] == "aborted" and told["reason"].startswith("differs>20%: ")
    assert house.registry.find("m", "2.0").metrics.unnamed.requests == 0


@compares
async def test_a_comparison_that_agrees_goes_on_to_the_first_step(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    asked = START.replace("abort_if", "compare=true&allow_effects=true&abort_if") + ",differs%3E20%25"
    await house.tell("POST", asked)

    for _ in range(80):
        await ask(house, 1)
        house.clock.advance(0.1)
    await pass_time(house, 12)

    assert (await shown(house))["state"] == "stepping"
    assert house.registry.routes.of("m") == parse_route("1.0=50 2.0=50")


async def test_an_upgrade_holds_it_and_it_goes_on_afterwards(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.tell("POST", START)
    await ask(house, 150)

    house.registrar.gate.close()
    await pass_time(house, 15)
    assert (await shown(house))["share"] == 50
    house.registrar.gate.open()
    await pass_time(house, 2)

    assert (await shown(house))["share"] == 100


def test_a_decision_that_raises_is_not_the_last_one() -> None:
    clock, calls = FakeClock(), 0

    def expects(name: str) -> bool:
        nonlocal calls
        calls += 1
        raise RuntimeError(name)

    nothing: Any = None
    registry = cast(Any, SimpleNamespace(expects=expects))
    rollouts = Rollouts(registry, nothing, nothing, nothing, clock, Events())
    rollouts.restore({"m": cast(Any, SimpleNamespace(going_on=True))})
    rollouts.begin()

    for _ in range(2):
        with pytest.raises(RuntimeError):
            clock.advance(1.0)

    assert calls == 2
