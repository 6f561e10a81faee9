"""A version that is loaded on demand: the first request loads it, idleness unloads it, an operator's word stays."""

from tests.extensions.residency.stub_house import StubHouse


def test_requests_that_wait_are_refused_when_an_operator_unloads() -> None:
    house = StubHouse(load_time=100.0)
    model = house.add()
    house.ask(model, "a")

    model.presence.end("unloaded by an operator")
    house.clock.settle()

    assert house.answers == ["a 503"]


def test_clients_that_left_before_the_load_began_cause_none() -> None:
    house = StubHouse(load_time=100.0)
    for name in ("x", "y"):
        house.ask(house.add(name))
    model = house.add("z")
    job = house.ask(model)

    model.abandon(job)
    house.clock.advance(200.0)

    assert house.loaded == {"x", "y"}
