"""Honest clients: each request has an account, is judged, and is entered in the ledger."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.peer import Peer, Unanswered
from tests.lab.harness.verdict import Asked, Broken, Kind, Rules, judge

LARGE = 64 * 1024  # bytes; from here on bodies go through shared memory
LARGEST = 512 * 1024


def some_words(chance: random.Random) -> bytes:
    """Mostly a few, sometimes so many that they go through shared memory."""
    return large_words(chance) if chance.random() < 0.02 else chance.randbytes(chance.randrange(1, 2000))


def large_words(chance: random.Random, most: int = LARGEST) -> bytes:
    return chance.randbytes(chance.randrange(LARGE, most))


class Habit(NamedTuple):
    """How a client asks, one request after the other.

    Attributes:
        model: that it asks.
        keep: all on one connection.
        pause: draws the seconds before a request.
        deadlines: the milliseconds that it allows, of which one is drawn; 0 for any.
        slow, crash: the fractions of requests whose handler is to take longer, or to end its process.
        leaves: the fraction of requests of which it does not wait for the end.
        versions: the versions that it names, of which one is drawn; 0 for none.
    """

    model: str
    keep: bool = True
    words: Callable[[random.Random], bytes] = some_words
    pause: Callable[[random.Random], float] = lambda chance: 0.0
    deadlines: Sequence[int] = (0,)
    slow: float = 0.0
    crash: float = 0.0
    leaves: float = 0.0
    versions: Sequence[int] = (0,)


class Clients(Crowd):
    """Threads that ask until they are told to stop, and finish what they have begun.

    Args:
        address: HOST:PORT.
        rules: model → its promises.
        habits: of each client.
    """

    def __init__(
        self, address: str, ledger: Ledger, seed: str, rules: Mapping[str, Rules], habits: Sequence[Habit]
    ) -> None:
        super().__init__(ledger, seed)
        self._address = address
        self._rules = rules
        for habit in habits:
            self.add(self._live, habit)

    def _live(self, habit: Habit, chance: random.Random) -> None:
        peer: Peer | None = None
        while not self.over.wait(habit.pause(chance)):
            model, make = habit.model, partial(self.ledger.make, habit.model, self._rules[habit.model])
            if chance.random() < habit.leaves:
                self._leave(model, make(habit.words(chance)), chance)
                continue
            slow, crash = chance.random() < habit.slow, chance.random() < habit.crash
            deadline, version = chance.choice(habit.deadlines), chance.choice(habit.versions)
            asked = make(habit.words(chance), deadline, slow=slow, crash=crash, version=version)
            peer = self._ask(model, asked, peer, habit.keep)
        if peer is not None:
            peer.close()

    def _ask(self, model: str, asked: Asked, peer: Peer | None, keep: bool) -> Peer | None:
        """Ask once; give the connection, if the next request may go there."""
        began = time.monotonic()
        try:
            peer = peer or Peer(self._address)
            peer.ask(model, asked, keep=keep)
            told = peer.answer()
            kind, pid = judge(asked, told, self.ledger.killed)
            self.ledger.ended(model, asked, kind, pid, time.monotonic() - began)
        except Unanswered as error:
            self.ledger.unanswered.append(f"{asked.id} to {model}: {error}")
        except Broken as error:
            self.ledger.broken.append(f"{model}: {error}")
        else:
            if kind is Kind.QUEUE_FULL:
                self.over.wait(0.01)
            if keep and told.closes:
                self.ledger.count("answers that ended a kept connection")
            if keep and told.whole and not told.closes:
                return peer
        if peer is not None:
            peer.close()
        return None

    def _leave(self, model: str, asked: Asked, chance: random.Random) -> None:
        """Ask on a connection of its own, and leave in the middle."""
        kind = chance.choice([Kind.HALF_SENT, Kind.LEFT, Kind.HALF_READ])
        try:
            peer = Peer(self._address)
            peer.ask(model, asked, share=0.5 if kind is Kind.HALF_SENT else 1.0)
            if kind is Kind.HALF_READ:
                peer.read_some()
            else:
                self.over.wait(chance.choice((0.0, 0.02, 0.3)) * chance.random())
            peer.close(abort=chance.random() < 0.5)
            self.ledger.ended(model, asked, kind)
        except Unanswered as error:
            self.ledger.unanswered.append(f"{asked.id} to {model}: {error}")
        except Broken as error:
            self.ledger.broken.append(f"{model}: {error}")
