"""Lives of one listener and a few clients, who do what any client may, on a virtual clock.

    python -m tests.lab lives, or python -m tests.lab.lives [--seeds 10000] [--first 1] [--seed N]

A life has two parts. First anything happens: clients send, stop reading, close their side, reset; the application
answers whole, in pieces, late or not; time passes, the listener stops. Then calm: all is answered, everybody reads, and
each client leaves or waits until its connection is closed.

In a calm life the listener does not stop and no deadline passes, so that the requests of polite clients must all be
answered.
"""

import gc
import random
import sys
from collections.abc import Callable
from dataclasses import replace

from tests.http.peer import LIMITS, Server
from tests.lab.harness import seeds
from tests.lab.harness.verdict import Broken
from tests.lab.lives.client import LivingClient
from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.places import PAGE
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Request, Response

LONG = 1000.0  # seconds, more than any deadline of a connection
Say = Callable[[str], None]


def admit(request: Request) -> None:
    """Refuse some requests before their bodies are read."""
    if request.header("no"):
        raise BadRequest("no")


class Life:
    """One life; `run` raises `Broken` if an invariant does not hold."""

    def __init__(self, seed: int, say: Say) -> None:
        self._say = say
        self._chance = chance = random.Random(seed)
        self._calm = chance.random() < 0.4
        self._eager = chance.random() < 0.5  # the application answers half of the requests at once
        limits = replace(LIMITS, max_body=chance.choice([1000, 10**6]), pipeline=chance.choice([1, 3, 32]))
        if self._calm:
            limits = replace(limits, max_body=10**6)
        self._server = Server(self._take, limits, admit=admit)
        self._arena = Arena(chance.choice([4, 40, 400]) * PAGE) if chance.random() < 0.7 else None
        self._server.listener.storage = self._arena
        if not self._calm and chance.random() < 0.4:
            self._server.listener.receiving.limit = chance.choice([5, 50, PAGE, 40 * PAGE])
        if not self._calm and chance.random() < 0.3:
            self._server.listener.sending.limit = chance.choice([500, 5000, 10**6])
        self._clients: list[LivingClient] = []
        for _ in range(chance.choice([1, 1, 2, 3])):
            self._connect()

    def run(self) -> None:
        for _ in range(self._chance.randint(5, 60)):
            self._step()
            self._check()
        self._become_calm()
        self._end()
        self._forget()

    def _connect(self) -> str:
        self._clients.append(LivingClient(self._server, self._chance, polite=self._chance.random() < 0.5))
        return "connects"

    def _take(self, exchange: Exchange) -> None:
        client = next(each for each in self._clients if each.connection is exchange._connection)
        client.exchanges.append(exchange)
        if self._eager and self._chance.random() < 0.5:
            exchange.respond(Response(200, b"at once"))
        elif self._chance.random() < 0.5:
            stays = self._chance.random() < 0.5
            exchange.on_leave = lambda gone: stays and not gone

    # The first part.

    def _step(self) -> None:
        chance, server = self._chance, self._server
        number = chance.randrange(len(self._clients))
        client = self._clients[number]
        act = chance.random()
        did = ""
        if act < 0.5:
            did = client.send() if client.open and not client.finished else ""
        elif act < 0.6:
            seconds = 0.01 if self._calm else chance.choice([0.01, 0.5, 2.0, 5.0, 10.5, 31.0, 76.0])
            server.clock.advance(seconds)
            number, did = -1, f"{seconds} s pass"
        elif act < 0.8:
            number, did = -1, self._answer()
        elif act < 0.96:
            if client.open and not client.polite:
                did = self._misbehave(client, act)
        elif act < 0.975:
            did, number = self._stop(), -1
        elif len(self._clients) < 4 and not server.listener.stopping:
            did, number = self._connect(), len(self._clients) - 1
        if did:
            self._say(f"client {number} {did}" if number >= 0 else did)
        server.clock.settle()

    def _misbehave(self, client: LivingClient, act: float) -> str:
        if act < 0.84:
            return "" if client.finished else client.finish()
        return client.leave() if act < 0.87 else client.read()

    def _stop(self) -> str:
        if self._calm:
            return ""
        if self._chance.random() < 0.5:
            self._server.listener.wind_down(30.0)
            return "the listener winds down"
        self._server.listener.stop()
        return "the listener stops"

    def _answer(self) -> str:
        """Go on with some answer."""
        waiting = [each for each in self._server.exchanges if not each.done]
        if not waiting:
            return ""
        chance, exchange = self._chance, self._chance.choice(waiting)
        kind = chance.random()
        if exchange.started:
            if kind < 0.5:
                exchange.send(b"piece" * chance.choice([1, 1000, 20_000]))
                return f"{exchange!r} gets a piece"
            if kind < 0.9 or self._calm:
                exchange.finish()
            else:
                exchange.fail(BadRequest("it broke"))
        elif kind < 0.6:
            status = chance.choice([200, 204, 500])
            exchange.respond(Response(status, b"" if status == 204 else b"x" * chance.choice([0, 3, 100_000])))
        elif kind < 0.8:
            exchange.start(Response(200))
            return f"{exchange!r} begins"
        else:
            exchange.fail(BadRequest("no"))
        return f"{exchange!r} is answered"

    def _check(self) -> None:
        for number, client in enumerate(self._clients):
            try:
                client.check()
            except Broken as broken:
                raise Broken(f"client {number}: {broken}") from None

    # The second part.

    def _become_calm(self) -> None:
        """Let everybody read, polite clients send the rest, and the application answer all."""
        self._say("calm")
        for client in self._clients:
            if client.open:
                client.read(everything=True)
            if client.open and client.polite:
                client.send_rest()
        self._server.clock.settle()
        while waiting := [each for each in self._server.exchanges if not each.done]:
            for exchange in waiting:
                if exchange.started:
                    exchange.finish()
                else:
                    exchange.respond(Response(200, b"calm"))
            self._server.clock.settle()
            for client in self._clients:
                if client.open:
                    client.read(everything=True)
            self._server.clock.settle()
        self._check()
        for number, client in enumerate(self._clients):
            if self._calm and client.polite:
                complete = sum(answer.complete for answer in client.answers)
                if not client.open or complete != client.requests:
                    raise Broken(f"client {number}: a polite client is answered: {complete} of {client.requests}")

    def _end(self) -> None:
        """Let some clients leave, and wait for the others; nothing may be left."""
        for client in self._clients:
            if client.open and self._chance.random() < 0.5:
                client.leave()
        self._server.clock.advance(LONG)
        self._check()
        server, listener = self._server, self._server.listener
        if any(client.open for client in self._clients):
            raise Broken(f"a connection is closed in the end: {[client.connection for client in self._clients]}")
        if listener.connections or len(listener._deadlines) or listener._timer is not None:
            raise Broken(f"nothing is left of connections: {listener!r}, {len(listener._deadlines)} deadlines")
        if timers := [each for *_, each in server.clock._timers if each.call is not None]:
            raise Broken(f"no timer is left: {timers}")
        if listener.receiving.used or listener.sending.used:
            raise Broken(f"no budget is used: {listener.receiving.used} and {listener.sending.used} bytes")

    def _forget(self) -> None:
        """Forget all requests: then no memory may be leased."""
        self._clients.clear()
        self._server.exchanges.clear()
        if self._arena is not None and self._arena.used:
            gc.collect()  # a connection and its transport refer to each other
            self._server.clock.settle()
            if self._arena.used:
                raise Broken(f"no memory is leased: {self._arena.used} bytes")


def run(seed: int, say: Say = lambda text: None) -> str | None:
    """Live a life; return what is broken, None if nothing."""
    try:
        Life(seed, say).run()
    except Exception as error:  # noqa: BLE001 - whatever a connection raises is a finding
        return f"{type(error).__name__}: {error}"
    return None


def explain(seed: int) -> str:
    """Return the story of a seed."""
    story = [f"seed {seed}"]
    broken = run(seed, story.append)
    return "\n  ".join([*story, broken] if broken else story)


def main(arguments: list[str]) -> int:
    return seeds.main("tests.lab.lives", arguments, run, explain, seeds=10_000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
