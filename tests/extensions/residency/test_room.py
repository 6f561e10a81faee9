"""More models than memory, on a virtual clock: real versions, queues and dispatchers over stub workers."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extensions.residency.stub_house import StubHouse
from tsctl.daemon.extensions.residency.decision import LOADS_AT_ONCE, YOUNG
from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.models.change import change_settings
from tsctl.daemon.models.version import ModelVersion

DONE = ("arrive", "arrive", "arrive", "hold", "load", "pin", "leave")


class Watched(StubHouse):
    """Looks after each call of the clock whether the promises hold.

    Attributes:
        broken: the sentences about those that did not.
    """

    def __init__(self, sizes: dict[str, int], limit: int, **further: float) -> None:
        super().__init__(sizes, {"host": limit}, **further)
        self.limit = limit
        self.broken: set[str] = set()
        self._before: dict[str, tuple[ResidenceState, bool]] = {}

    def run(self, seconds: float) -> None:
        end = self.clock.now() + seconds
        self.clock.later(seconds, lambda: None)
        while self.clock.now() < end and self.clock.step():
            self.look()

    def look(self) -> None:
        loading = [model for model in self.models if residence_of(model).state is ResidenceState.LOADING]
        if len(loading) > LOADS_AT_ONCE:
            self.broken.add(f"{len(loading)} loads at once")
        if self.resident > self.limit:
            self.broken.add(f"{self.resident} bytes of {self.limit}")
        for model in self.models:
            before = self._before.get(model.name)
            if before is not None and before[0] is ResidenceState.LOADED and residence_of(model).state is not before[0]:
                self._left(model, had_work=before[1])
            self._before[model.name] = residence_of(model).state, not model.idle

    def _left(self, model: ModelVersion, *, had_work: bool) -> None:
        if residence_of(model).state is not ResidenceState.UNLOADING and not model.pool.empty:
            return  # an operator's command: running requests finish, whatever comes
        if had_work and not model.idle:
            self.broken.add(f"{model.name} left with work")
        if residence_of(model).why.startswith("others") and residence_of(model).age < YOUNG:
            self.broken.add(f"{model.name} left after {residence_of(model).age:g} s")


def names(count: int) -> list[str]:
    return [f"m{index}" for index in range(count)]


def test_strangers_do_not_thrash() -> None:
    """Two models that fill the memory are asked in turn, each second: each stays at least half a minute."""
    house = Watched({"m0": 8, "m1": 8}, 10, batch_time=0.1)
    models = [house.add(name) for name in names(2)]
    for turn in range(600):
        house.ask(models[turn % 2], f"r{turn}")
        house.run(1.0)
    house.run(100.0)

    loads = sum(sum(residence_of(model).loads.values()) for model in models)
    assert loads <= 600 / YOUNG + 2
    assert sorted(house.answers) == sorted(f"r{turn} 200" for turn in range(600))
    assert house.broken == set()


def test_a_request_whose_room_never_comes_free_is_refused_after_the_time_of_a_load() -> None:
    house = Watched({"m0": 8, "m1": 8}, 10, batch_time=1000.0)
    busy = house.add("m0", response_timeout=10_000.0)
    house.ask(busy, "long")
    house.run(50.0)

    house.ask(house.add("m1", startup_timeout=60.0), "waits")
    house.run(65.0)

    assert house.answers == ["waits 503"]
    [(_, reply)] = house.client.replies
    assert b"no other model became idle" in bytes(reply.body)
    assert reply.retry_after == 30


def test_a_model_that_never_fits_is_refused_at_once_with_the_numbers() -> None:
    house = Watched({"m0": 20 * 2**20, "pinned": 2**20}, 10 * 2**20)
    house.ask(house.add("m0"), "r")

    [(_, reply)] = house.client.replies
    assert bytes(reply.body) == (
        b'Model "m0" cannot be loaded: its 20 MiB of 10 MiB on host do not fit: the models that stay leave no room.'
    )


def test_a_model_grows_and_the_least_recently_used_makes_room() -> None:
    house = Watched({"m0": 4, "m1": 4}, 9)
    first, second = house.add("m0"), house.add("m1")
    house.ask(first)
    house.run(40.0)
    house.ask(second)
    house.run(40.0)

    house.sizes["m1"] = 8
    house.ask(second)
    house.run(40.0)
    house.residency.reconsider()
    house.run(40.0)

    assert house.loaded == {"m1"}


def test_an_idle_model_leaves_its_template_for_as_long_again_and_one_that_makes_room_does_not() -> None:
    house = StubHouse({"m0": 4, "m1": 8}, {"host": 10})
    first, second = house.add("m0", keep_alive=60.0), house.add("m1", keep_alive=1e9)
    house.ask(first)
    house.clock.advance(70.0)
    house.ask(second)
    house.clock.advance(40.0)
    house.ask(first)
    house.clock.advance(40.0)

    assert house.templates.told == [("m0", 60.0), ("m1", 0.0)]


@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param({"keep_alive": 300.0}, {"keep_alive": 2.0}, id="a shorter keep-alive"),
        pytest.param({"keep_alive": 2.0, "pinned": True}, {"pinned": False}, id="no longer pinned"),
    ],
)
def test_a_setting_that_is_changed_counts_for_a_model_that_is_loaded(
    before: dict[str, Any], change: dict[str, Any]
) -> None:
    house = StubHouse()
    model = house.add(**before)
    house.ask(model)
    house.clock.advance(20.0)
    assert house.loaded == {"m"}

    change_settings(model, change)
    house.clock.settle()

    assert house.loaded == set()


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 10), min_size=1, max_size=5),
    steps=st.lists(st.tuples(st.sampled_from(DONE), st.integers(0, 4), st.floats(0, 60)), max_size=40),
)
def test_whatever_happens_each_request_is_answered_once_and_the_budget_holds(
    sizes: list[int], steps: list[tuple[str, int, float]]
) -> None:
    house = Watched(dict(zip(names(5), sizes, strict=False)), 10, load_time=4.0, batch_time=0.5)
    models = [house.add(name, keep_alive=20.0) for name in house.sizes]
    sent = left = 0
    for what, index, pause in steps:
        model = models[index % len(models)]
        match what:
            case "arrive" | "leave" if residence_of(model).comes:
                job = house.ask(model, f"r{sent}")
                if what == "leave" and job.phase.name == "QUEUED":
                    model.abandon(job)
                    left += 1
                sent += 1
            case "hold":
                model.presence.end("unloaded by an operator")
            case "load" if (
                residence_of(model).state is ResidenceState.HELD and house.resident + sizes[index % len(models)] <= 10
            ):
                model.presence.resume("loaded by an operator")
            case "pin":
                model.change(model.settings.changed({"pinned": not model.settings.pinned}, "set"))
        house.run(pause)
    house.run(1000.0)

    assert len(house.answers) == sent - left
    assert len({answer.partition(" ")[0] for answer in house.answers}) == sent - left
    assert {each for each in house.broken if not each.endswith("at once")} == set()


def test_a_stopped_model_that_has_left_makes_room_for_one_whose_requests_still_wait() -> None:
    """A daemon that stops keeps all versions registered, and answers what waits for a load within the grace time."""
    house = Watched({"m0": 8, "m1": 8}, 10)
    first, second = house.add("m0"), house.add("m1")
    house.ask(first, "before")
    house.run(5.0)
    house.ask(second, "waits")
    for each in (first, second):
        each.stop()

    first.pool.drain(30.0)
    house.run(1.0)
    first.close()
    house.run(5.0)

    assert house.answers == ["before 200", "waits 200"]
