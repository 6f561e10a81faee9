"""The GPUs that the daemon uses, and what they tell now.

They are read beside the loop: one reading at a time, and not again for a while after a failure. Reads within `FRESH`
seconds of an answer get the same.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.cards import (
    START_TIMEOUT,
    Card,
    FoundCards,
    ask_cards,
    find_cards,
    missing_cards,
    names_for_cuda,
    used_cards,
)

FRESH = 5.0  # seconds
BACKOFF = 60.0  # seconds without another attempt after a failure


class Gpus:
    """The GPUs that the daemon uses. Their numbers are their places.

    Args:
        cards: as they were found at the start.
        ask: reads this machine's GPUs; blocks, for seconds where their driver hangs.

    Attributes:
        cards: as given.
        names: of each in `CUDA_VISIBLE_DEVICES`.
        troubles: sentences for the operator.
        told: whether some GPU tells its state.
    """

    def __init__(
        self,
        clock: Clock,
        cards: Sequence[Card] = (),
        ask: Callable[[], FoundCards] = ask_cards,
        *,
        names: Sequence[str] = (),
        troubles: Sequence[str] = (),
    ) -> None:
        self.cards, self.troubles = cards, troubles
        self.names = names or names_for_cuda(cards, cards)
        self._clock = clock
        self._ask = ask
        self.told = any(card.uuid for card in cards)
        self._latest: Mapping[int, Card] = {}
        self._next = clock.now()  # the time of the next query
        self._asking: asyncio.Task[dict[int, Card]] | None = None

    @classmethod
    def of_this_machine(cls, clock: Clock, environment: Mapping[str, str], count: int | None = None) -> "Gpus":
        """Find this machine's; blocks as `find_cards` does.

        Args:
            count: as for `used_cards`.
        """
        found = FoundCards() if count == 0 else find_cards(lambda: ask_cards(START_TIMEOUT))
        cards = used_cards(environment, found.cards, count)
        troubles = [*found.troubles, *missing_cards(environment, found.cards, count)]
        return cls(clock, cards, names=names_for_cuda(cards, found.cards), troubles=troubles)

    @property
    def document(self) -> list[dict[str, Any]]:
        """The GPUs as they were found at the start, by their numbers; `memory` in bytes, 0 where nobody tells."""
        return [{"name": card.name, "uuid": card.uuid, "memory": card.total} for card in self.cards]

    def now(self) -> dict[int, Card]:
        """Return GPU → what it tells; blocks. One that tells nothing is missing."""
        if not self.told:
            return {}
        told = {card.uuid: card for card in self._ask().cards}
        return {place: told[card.uuid] for place, card in enumerate(self.cards) if card.uuid in told}

    async def read(self) -> Mapping[int, Card]:
        """Return GPU → what it tells; empty while they do not answer."""
        if self.told and self._clock.now() >= self._next:
            if self._asking is None:
                self._asking = asyncio.create_task(asyncio.to_thread(self.now))
                self._asking.add_done_callback(self._note)
            await asyncio.shield(self._asking)
        return self._latest

    def _note(self, asked: "asyncio.Task[dict[int, Card]]") -> None:
        self._asking = None
        self._latest = {} if asked.cancelled() else asked.result()
        self._next = self._clock.now() + (FRESH if self._latest else BACKOFF)
