"""The GPUs that the daemon uses are asked for their state; their driver's errors harm nothing."""

import asyncio
from collections.abc import Mapping

import pytest

from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.machine.cards import Card, FoundCards
from tsctl.daemon.core.machine.gpu import BACKOFF, FRESH, Gpus

MIB = 2**20
FIRST, SECOND = (Card(index=index, uuid=f"GPU-{index}", name="H100", total=4 * MIB) for index in range(2))
NONE: Mapping[int, Card] = {}


class Driver:
    """Tells of GPUs, and counts how often it was asked."""

    def __init__(self, *cards: Card) -> None:
        self.cards, self.asked = cards, 0

    def __call__(self) -> FoundCards:
        self.asked += 1
        return FoundCards(self.cards, "580.1" if self.cards else "")


@pytest.mark.parametrize("cards", [[], [Card(index=0)]], ids=["none", "GPUs that only the kernel module tells of"])
async def test_without_gpus_that_have_a_state_nothing_is_asked(cards: list[Card]) -> None:
    driver = Driver(FIRST)
    gpus = Gpus(FakeClock(), cards, driver)

    assert await gpus.read() == NONE
    assert (gpus.told, driver.asked, gpus.names) == (False, 0, ["0"] * len(cards))


async def test_a_gpu_has_the_number_of_its_place_whatever_the_machine_calls_it() -> None:
    gpus = Gpus(FakeClock(), [SECOND], Driver(FIRST, SECOND))

    assert await gpus.read() == {0: SECOND}


async def test_they_are_asked_once_for_all_who_ask_within_a_few_seconds() -> None:
    clock, driver = FakeClock(), Driver(FIRST)
    gpus = Gpus(clock, [FIRST], driver)

    one, other = await asyncio.gather(gpus.read(), gpus.read())
    await gpus.read()
    once = driver.asked
    clock.advance(FRESH)
    await gpus.read()

    assert one == other == {0: FIRST}
    assert (once, driver.asked) == (1, 2)


async def test_a_driver_that_fails_is_left_alone_for_a_while() -> None:
    clock, driver = FakeClock(), Driver()
    gpus = Gpus(clock, [FIRST], driver)

    assert await gpus.read() == NONE
    clock.advance(BACKOFF - 1)
    assert await gpus.read() == NONE
    once = driver.asked
    clock.advance(1)
    assert await gpus.read() == NONE

    assert (once, driver.asked) == (1, 2)
