"""Clients that ask steered models over HTTP and other protocols, and ask again where they are told to."""

import contextlib
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from tests.lab.chaos.steered.outages import Outages
from tests.lab.chaos.steered.verdict import AGAIN, Asked, Kind, Seen, Told, judge
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.peer import Peer, Unanswered
from tests.lab.harness.protocol_clients import ProtocolClients, SteeredClient
from tests.lab.harness.verdict import Broken

USERS = 200
CLIENTS = 14  # the half of them steady


class HttpClient:
    """Asks over one connection after the other, each as long as it lasts."""

    name = "HTTP"

    def __init__(self, address: str, outages: Outages) -> None:
        self._address = address
        self._outages = outages
        self._peer: Peer | None = None
        self._opened = 0.0

    def ask(self, asked: Asked, in_path: bool) -> Told:
        body = asked.words.encode()
        path = f"/predictions/{asked.model}" + (f"/{asked.version}" if in_path and asked.version else "")
        head = f"POST {path} HTTP/1.1\r\nHost: chaos\r\nContent-Type: text/plain\r\nX-User: {asked.user}\r\n"
        head += f"Content-Length: {len(body)}\r\n"
        head += f"X-Model-Version: {asked.version}\r\n" if asked.version and not in_path else ""
        try:
            if self._peer is None:
                self._opened = time.monotonic()
                self._peer = Peer(self._address)
            self._peer.send(asked.words, f"{head}\r\n".encode() + body)
            told = self._peer.answer()
        except Unanswered as error:
            self.close()
            return Told("", str(error), killed=self._outages.killed_since(self._opened))
        if not told.whole or told.closes:
            self.close()
        status, later = str(told.status) if told.whole else "", "retry-after" in told.headers
        return Told(status, told.body.decode(), later, last=told.closes)

    def close(self) -> None:
        if self._peer is not None:
            self._peer.close()
        self._peer = None


class Askers(Crowd):
    """Threads that ask: the steady ones for the model that is being steered, the others for one after the other.

    Args:
        models: name → versions.
        hot: returns the model that is being steered.

    Attributes:
        kinds: how attempts ended.
        by_protocol: right answers.
        seen: by model, the attempts that named no version; without those that a replaced daemon answered.
    """

    def __init__(
        self, address: str, models: dict[str, tuple[str, ...]], hot: Callable[[], str],
        outages: Outages, ledger: Ledger, seed: str, others: Sequence[ProtocolClients],
    ) -> None:  # fmt: skip
        super().__init__(ledger, seed)
        self.kinds: Counter[Kind] = Counter()
        self.by_protocol: Counter[str] = Counter()
        self.seen: defaultdict[str, list[Seen]] = defaultdict(list)
        self._models = models
        self._hot = hot
        self._outages = outages
        self._lock = threading.Lock()
        makers: list[Callable[[], SteeredClient]] = [lambda: HttpClient(address, outages)]
        for each in others:
            makers += each.steered(outages)
        for number in range(CLIENTS):
            self.add(self._live, makers[number % len(makers)], number < CLIENTS // 2)

    def _live(self, maker: Callable[[], SteeredClient], steady: bool, chance: random.Random) -> None:
        with contextlib.closing(maker()) as client:
            while not self.over.wait(chance.uniform(0.0, 0.01 if steady else 0.5)):
                self._ask(client, self._draw(steady, chance), chance)

    def _draw(self, steady: bool, chance: random.Random) -> Asked:
        names = list(self._models)
        model = self._hot() if steady else chance.choices(names, [1 / (1 + place) for place in range(len(names))])[0]
        version = chance.choice(self._models[model]) if chance.random() < 0.3 else ""
        return Asked(model, version, f"{chance.randrange(USERS)}", f"{chance.random()}")

    def _ask(self, client: SteeredClient, asked: Asked, chance: random.Random) -> None:
        """Ask until there is an answer, or the request was not answered as it must be."""
        kind, in_path = None, chance.random() < 0.5
        while kind is None or kind in AGAIN:
            begun = time.monotonic()
            try:
                told = client.ask(asked, in_path)
                kind, version, pid = judge(asked, told)
            except Unanswered as error:
                self.ledger.unanswered.append(f"{client.name}: {error}")
                return
            except Broken as error:
                self.ledger.broken.append(f"{client.name}: {error}")
                return
            ended = time.monotonic()
            if pid:
                self.ledger.heard(pid)
            with self._lock:
                self.kinds[kind] += 1
                if kind is Kind.RIGHT:
                    self.by_protocol[client.name] += 1
                    self.ledger.slowest = max(self.ledger.slowest, ended - begun)
                if not asked.version and not told.last:
                    self.seen[asked.model].append(Seen(begun, ended, asked.user, version))
            if kind in AGAIN:
                time.sleep(0.1)
                self._outages.wait()
