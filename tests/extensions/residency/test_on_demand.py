"""A version that is loaded on demand: the first request loads it, idleness unloads it, an operator's word stays."""

from typing import Any

import pytest

from tests.extensions.residency.stub_house import StubHouse
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.extensions.residency.decision import LOOK_EVERY
from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.workers.engine import LoadFailure


def test_a_registered_version_has_no_worker_and_can_be_asked() -> None:
    house = StubHouse()

    model = house.add(workers=2, max_workers=2)

    assert (model.word, model.available, model.healthy, model.pool.wanted) == ("unloaded", True, True, 0)
    assert house.engine.workers == []


def test_the_first_request_waits_for_the_load_and_is_answered() -> None:
    house = StubHouse(load_time=2.0, batch_time=1.0)
    model = house.add(workers=2, max_workers=2)

    house.ask(model, "first")

    assert (model.word, model.pool.wanted, model.waiting) == ("loading", 2, 1)
    house.clock.advance(3.0)
    assert house.answers == ["first 200"]
    assert residence_of(model).load_seconds == pytest.approx(2.0)


def test_a_version_that_is_idle_for_its_keep_alive_is_unloaded_and_the_next_request_loads_it_again() -> None:
    house = StubHouse(load_time=2.0, batch_time=1.0)
    model = house.add(keep_alive=60.0)
    house.ask(model, "a")
    house.clock.advance(3.0)

    house.clock.advance(59.9)
    assert house.loaded == {"m"}
    house.clock.advance(0.2)

    assert (model.word, model.pool.empty, residence_of(model).why) == ("unloaded", True, "idle for 1m")
    house.ask(model, "b")
    house.clock.advance(3.0)
    assert house.answers == ["a 200", "b 200"]
    assert (dict(residence_of(model).loads), dict(residence_of(model).unloads)) == ({"request": 2}, {"idle": 1})


def test_a_version_with_work_is_not_unloaded_and_goes_soon_after() -> None:
    house = StubHouse(batch_time=500.0)
    model = house.add(keep_alive=10.0, response_timeout=1000.0)
    house.ask(model)
    house.clock.advance(490.0)
    assert house.loaded == {"m"}

    house.clock.advance(12.0 + 10.0 + LOOK_EVERY)

    assert house.loaded == set()
    assert house.answers == ["r 200"]


@pytest.mark.parametrize(
    "kept",
    [{"keep_alive": 1e9}, {"pinned": True, "keep_alive": 1.0}, {"loading": "at_once", "keep_alive": 1.0}],
    ids=["forever", "pinned", "loaded at once"],
)
def test_a_version_may_be_kept_for_good(kept: dict[str, Any]) -> None:
    house = StubHouse()
    house.ask(house.add(**kept))

    house.clock.advance(1e6)

    assert house.loaded == {"m"}


def test_requests_that_wait_are_refused_when_an_operator_unloads() -> None:
    house = StubHouse(load_time=100.0)
    model = house.add()
    house.ask(model, "a")

    model.presence.end("unloaded by an operator")
    house.clock.settle()

    assert house.answers == ["a 503"]


def test_a_deadline_ends_the_waiting_for_a_load() -> None:
    house = StubHouse(load_time=100.0)
    model = house.add()

    house.ask(model, "a", seconds=5.0)
    house.clock.advance(6.0)

    assert house.answers == ["a 504"]


def test_beyond_the_queue_a_client_is_told_to_come_back_when_the_load_is_done() -> None:
    house = StubHouse(load_time=40.0)
    model = house.add(queue_jobs=1, keep_alive=1.0)
    house.ask(model, "a")
    house.clock.advance(60.0)
    house.ask(model, "b")
    house.clock.advance(10.0)

    with pytest.raises(QueueFull) as full:
        house.ask(model, "c")

    assert full.value.retry_after == 30


def test_a_load_that_fails_is_told_to_those_that_wait_and_a_retry_loads_again() -> None:
    house = StubHouse()
    house.engine.load_failure = LoadFailure("no such file")
    model = house.add()
    house.ask(model, "a")
    house.clock.advance(3.0)
    assert (house.answers, model.word, model.available) == (["a 503"], "failed", False)

    house.engine.load_failure = None
    model.retry()
    house.clock.advance(3.0)

    assert house.loaded == {"m"}


def test_an_unloaded_version_that_is_tried_again_stays_unloaded_and_the_next_request_loads_it() -> None:
    house = StubHouse()
    model = house.add()

    model.retry()
    assert residence_of(model).state is ResidenceState.UNLOADED
    house.ask(model, "a")
    house.clock.advance(5.0)

    assert house.answers == ["a 200"]


def test_a_worker_that_ends_is_replaced_while_the_version_stays_loaded() -> None:
    house = StubHouse(load_time=1.0)
    model = house.add()
    house.ask(model, "a")
    house.clock.advance(5.0)

    house.engine.workers[0].die()
    house.ask(model, "b")
    house.clock.advance(5.0)

    assert house.answers == ["a 200", "b 200"]
    assert residence_of(model).state is ResidenceState.LOADED


def test_clients_that_left_before_the_load_began_cause_none() -> None:
    house = StubHouse(load_time=100.0)
    for name in ("x", "y"):
        house.ask(house.add(name))
    model = house.add("z")
    job = house.ask(model)

    model.abandon(job)
    house.clock.advance(200.0)

    assert house.loaded == {"x", "y"}
