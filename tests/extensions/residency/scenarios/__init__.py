"""A version that is loaded on demand, for scenarios."""

from typing import Any

from tests.extensions.residency.stub_house import StubHouse
from tests.kit.version import StubVersion


def bench(load_time: float = 2.0, batch_time: float = 1.0, **settings: Any) -> StubVersion:
    """Return the only version of a house, not loaded yet."""
    house = StubHouse(load_time=load_time, batch_time=batch_time)
    made = StubVersion(workers=0, clock=house.clock)
    made.engine, made.client = house.engine, house.client
    made.model = house.add(**settings)
    return made
