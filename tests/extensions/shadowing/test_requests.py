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
