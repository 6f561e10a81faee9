"""A shadow of a route gets copies of the requests that name no version."""

from pathlib import Path

from tests.api.house import House

SHADOWED = "/models/m/route?weights=1.0%3D1&shadow=2.0&allow_effects=true"


async def shadowed(tmp_path: Path) -> House:
    house = House(tmp_path)
    for version in ("1.0", "2.0"):
        await house.serve("m", version)
    status, _ = await house.tell("PUT", SHADOWED)
    assert status == 200
    return house


def copies(house: House) -> int:
    """Return how many requests the shadow had."""
    return house.registry.find("m", "2.0").metrics.named.requests


async def test_a_request_is_copied_and_counted(tmp_path: Path) -> None:
    house = await shadowed(tmp_path)

    answer = await house.ask("POST", "/predictions/m", b"x")
    house.clock.advance(1.0)
    _, (described,) = await house.tell("GET", "/models/m")
    metrics = (await house.ask("GET", "/metrics")).body.decode()

    assert (answer.status, answer.body, copies(house)) == (200, b"x", 1)
    assert described["tsctl"]["copies"] == {"same": 1, "close": 0, "different": 0, "failed": 0, "dropped": 0}
    assert 'tsctl_shadow_answers_total{model="m",result="same",version="2.0"} 1.0' in metrics


async def test_a_request_that_names_its_version_is_not_copied(tmp_path: Path) -> None:
    house = await shadowed(tmp_path)
    await house.ask("POST", "/predictions/m", b"x")
    house.clock.advance(1.0)

    await house.ask("POST", "/predictions/m/1.0", b"x")
    await house.ask("POST", "/predictions/m", b"x", "X-Model-Version: 1.0")
    house.clock.advance(1.0)

    assert copies(house) == 1


async def test_a_route_without_a_shadow_ends_the_copies(tmp_path: Path) -> None:
    house = await shadowed(tmp_path)
    await house.ask("POST", "/predictions/m", b"x")
    house.clock.advance(1.0)

    await house.tell("PUT", "/models/m/route?weights=1.0%3D1")
    await house.ask("POST", "/predictions/m", b"x")
    house.clock.advance(1.0)

    assert copies(house) == 1
    assert not any(model.watchers for model in house.registry)


async def test_a_new_route_goes_on_with_the_copies(tmp_path: Path) -> None:
    house = await shadowed(tmp_path)
    await house.tell("PUT", SHADOWED + "&sample=100%25")
    for _ in range(3):
        await house.ask("POST", "/predictions/m", b"x")
        house.clock.advance(1.0)

    assert copies(house) == 3
