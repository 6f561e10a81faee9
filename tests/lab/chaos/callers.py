"""Clients that ask without pause, each of its own random sequence: some keep their connections, some leave early."""

import contextlib
import random
import threading
from collections.abc import Callable

from tests.lab.chaos.calls import Channel
from tests.lab.chaos.crowd import Crowd
from tests.lab.chaos.ledger import Ledger
from tests.lab.chaos.peer import Peer, Unanswered
from tests.lab.chaos.verdict import Broken, Kind, Rules, judge

MODELS = {
    "steady": Rules(),
    "once": Rules(retry=False),
    "narrow": Rules(narrow=True),
    "pieces": Rules(pieces=True),
    "timed": Rules(timeout=100),
    "crashing": Rules(retry=False),
}
LARGE = 64 * 1024  # bytes; from here on bodies go through shared memory
LARGEST = 512 * 1024
CALLERS = 3  # over gRPC
DEADLINES = (0, 30, 60, 100)  # milliseconds that a client allows; 0 for any


class Callers(Crowd):
    """Threads that ask until they are told to stop, and finish what they have begun.

    Args:
        address, grpc: HOST:PORT.
        seed: of what they ask.
    """

    def __init__(self, address: str, grpc: str, ledger: Ledger, seed: str) -> None:
        self._address = address
        self._grpc = grpc
        self._ledger = ledger
        super().__init__()
        works: list[tuple[Callable[[str, random.Random], None], str]] = [
            (self._keep, "steady"), (self._keep, "steady"), (self._keep, "steady"), (self._fresh, "steady"),
            (self._large, "steady"), (self._keep, "once"), (self._fresh, "once"), (self._keep, "pieces"),
            (self._fresh, "pieces"), (self._keep, "narrow"), (self._keep, "narrow"), (self._keep, "narrow"),
            (self._fresh, "narrow"), (self._leave, "steady"), (self._leave, "once"), (self._leave, "pieces"),
            (self._hurried, "steady"), (self._hurried, "steady"), *[(self._hurried, "timed")] * 5,
            (self._crashing, "crashing"), (self._keep, "crashing"), (self._keep, "crashing"),
            *[(self._call, model) for model in ("steady", "once", "steady")[:CALLERS]],
        ]  # fmt: skip
        self._threads = [
            threading.Thread(target=self._guarded, args=(work, model, random.Random(f"{seed} caller {index}")))
            for index, (work, model) in enumerate(works)
        ]

    def _guarded(self, work: Callable[[str, random.Random], None], model: str, chance: random.Random) -> None:
        try:
            work(model, chance)
        except Exception as error:  # noqa: BLE001 - a thread's bug would go unseen
            self._ledger.broken.append(f"a client of {model} broke: {error!r}")

    def _keep(self, model: str, chance: random.Random) -> None:
        """One request after the other on one connection."""
        peer: Peer | None = None
        while not self._over.is_set():
            peer = self._ask(model, _words(chance), peer)
        if peer is not None:
            peer.close()

    def _fresh(self, model: str, chance: random.Random) -> None:
        """A connection for each request."""
        while not self._over.is_set():
            self._ask(model, _words(chance), None, keep=False)

    def _large(self, model: str, chance: random.Random) -> None:
        """Only large bodies, on one connection."""
        peer: Peer | None = None
        while not self._over.is_set():
            peer = self._ask(model, chance.randbytes(chance.randrange(LARGE, LARGEST)), peer)
            self._over.wait(0.02)  # else it would take a core for itself
        if peer is not None:
            peer.close()

    def _hurried(self, model: str, chance: random.Random) -> None:
        """Large bodies whose time is often over while a worker has them, or is about to begin them."""
        peer: Peer | None = None
        while not self._over.is_set():
            words, deadline = chance.randbytes(chance.randrange(LARGE, 2 * LARGE)), chance.choice(DEADLINES)
            peer = self._ask(model, words, peer, deadline=deadline, slow=model == "timed" and chance.random() < 0.2)
            self._over.wait(chance.choice((0.0, 0.02)))
        if peer is not None:
            peer.close()

    def _crashing(self, model: str, chance: random.Random) -> None:
        """Requests of which many end their workers, each with other bytes than those before."""
        peer: Peer | None = None
        while not self._over.is_set():
            peer = self._ask(model, _words(chance), peer, crash=chance.random() < 0.5)
            self._over.wait(chance.uniform(0.0, 0.3))
        if peer is not None:
            peer.close()

    def _call(self, model: str, chance: random.Random) -> None:
        """One call after the other over gRPC, on one channel."""
        with contextlib.closing(Channel(self._grpc)) as channel:
            while not self._over.is_set():
                asked = self._ledger.make(model, MODELS[model], _words(chance))
                try:
                    told = channel.ask(model, asked)
                    kind, pid = (Kind.AGAIN, 0) if told is None else judge(asked, told, self._ledger.killed)
                    self._ledger.ended(model, asked, kind, pid)
                    if told is None:
                        self._over.wait(0.1)  # as clients of gRPC do, before they ask again
                except Broken as error:
                    self._ledger.broken.append(f"{model}, over gRPC: {error}")

    def _ask(
        self,
        model: str,
        words: bytes,
        peer: Peer | None,
        *,
        keep: bool = True,
        deadline: int = 0,
        **further: bool,
    ) -> Peer | None:
        """Ask once; gives the connection, if the next request may go there."""
        asked = self._ledger.make(model, MODELS[model], words, deadline, **further)
        try:
            peer = peer or Peer(self._address)
            peer.ask(model, asked, keep=keep)
            told = peer.answer()
            kind, pid = judge(asked, told, self._ledger.killed)
            self._ledger.ended(model, asked, kind, pid)
        except Unanswered as error:
            self._ledger.unanswered.append(f"{asked.id} to {model}: {error}")
        except Broken as error:
            self._ledger.broken.append(f"{model}: {error}")
        else:
            if kind is Kind.QUEUE_FULL:
                self._over.wait(0.01)
            if keep and told.whole and not told.closes:
                return peer
        if peer is not None:
            peer.close()
        return None

    def _leave(self, model: str, chance: random.Random) -> None:
        """Ask, and leave in the middle."""
        while not self._over.wait(chance.uniform(0.0, 0.1)):
            kind = chance.choice([Kind.HALF_SENT, Kind.LEFT, Kind.HALF_READ])
            asked = self._ledger.make(model, MODELS[model], _words(chance))
            try:
                peer = Peer(self._address)
                peer.ask(model, asked, share=0.5 if kind is Kind.HALF_SENT else 1.0)
                if kind is Kind.HALF_READ:
                    peer.read_some()
                else:
                    self._over.wait(chance.uniform(0.0, 0.02))
                peer.close(abort=chance.random() < 0.5)
                self._ledger.ended(model, asked, kind)
            except Unanswered as error:
                self._ledger.unanswered.append(f"{asked.id} to {model}: {error}")
            except Broken as error:
                self._ledger.broken.append(f"{model}: {error}")


def _words(chance: random.Random) -> bytes:
    """Mostly a few, sometimes so many that they go through shared memory."""
    if chance.random() < 0.02:
        return chance.randbytes(chance.randrange(LARGE, LARGEST))
    return chance.randbytes(chance.randrange(1, 2000))
