"""What goes over connections, and when: text files that are compared whole, on a clock that a line moves.

`## the claim` begins one, with a listener (tests/http/peer.py) and a client. In it, what the client sends:

    > GET / & LAST                     requests, in one write; LAST says `Connection: close`
    > POST / abc [Expect: 100-continue] cut 3    a body, a further header, and the last 3 bytes kept for later
    > "GET / HT" * 5                   bytes as they are, so many times; `bytes(1000)` are as many

and what happens:

    + server {"max_body": 10}          limits, or, with `+ echo`, an application that answers with the body
    + pass 74.9                        seconds
    + trickle 9 1.0 "a"                9 times: a second, then these bytes
    + answer 0 first                   the application answers the request of this number; `+ close 0 first`: for good
    + begin 0, + piece 0 some, + end 0 the same in pieces
    + runs 0, + waits 1                what leaving clients do to its work: it goes on, or is called off
    + deaf, + hears                    the client reads no more, and reads again; `+ window 0`, `+ takes 100`: bytes
    + unsent 100                       bytes that the system has not sent yet
    + leaves, + ends                   the connection is lost, the client closes its side
    + client b, + as a                 another client, the one that the next lines are of
    + stop, + abort, + wind down 10    the listener

The rest is written by `python -m tests.lab transcripts`: what came, and what is different since the line before.
"""

import http.client
import json
import re
from dataclasses import replace

from tests.http.peer import GET, LAST, LIMITS, Peer, Server, echo, get, read_answers
from tsctl.daemon.http.connection import CONTINUE
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.messages import Response

REQUEST = re.compile(
    r"(?P<method>[A-Z]+) (?P<target>\S+)(?: (?P<body>[^\[ ]+))?(?P<headers>(?: \[[^]]*])*)(?: cut (?P<cut>\d+))?"
)


def play(lines: list[str]) -> list[str]:
    """Let it happen again, and return the lines as they would have to be."""
    talk, made = _Talk(lines), list[str]()
    for line in lines:
        if line[:2] in ("> ", "+ "):
            (talk.send if line[0] == ">" else talk.happen)(line[2:])
            talk.server.clock.settle()
            made += [line, *(each.rstrip() for each in talk.news())]
    return made


class _Talk:
    """A listener, its clients, and what has been told of each."""

    def __init__(self, lines: list[str]) -> None:
        given = [line[9:] for line in lines if line.startswith("+ server ")]
        limits = replace(LIMITS, **json.loads(given[0])) if given else LIMITS
        self.server = Server(echo if "+ echo" in lines else lambda exchange: None, limits)
        self._peers: dict[str, Peer] = {}
        self._told: dict[str, list[str]] = {}
        self._name, self._asked = "a", 0
        self._left: list[str] = []
        self.happen("client a")

    def send(self, text: str) -> None:
        self._peers[self._name].send(b"".join(map(_bytes, text.split(" & "))))

    def happen(self, text: str) -> None:
        peer, listener = self._peers.get(self._name), self.server.listener
        verb, *words = text.split(" ")
        number = int(words[0]) if words and words[0].isdecimal() else 0
        exchange = self.server.exchanges[number] if number < len(self.server.exchanges) else None
        body = _bytes(json.dumps(" ".join(words[1:])))
        match verb, peer, exchange:
            case (("server" | "echo"), _, _):
                ...
            case "client", _, _:
                self._name = words[0]
                self._peers[self._name], self._told[self._name] = self.server.connect(), []
            case "as", _, _:
                self._name = words[0]
            case "pass", _, _:
                self.server.clock.advance(float(words[0]))
            case "trickle", Peer(), _:
                for _ in range(number):
                    self.server.clock.advance(float(words[1]))
                    peer.send(_bytes(" ".join(words[2:])))
            case (("answer" | "close"), _, Exchange()):
                exchange.close = exchange.close or verb == "close"
                exchange.respond(Response(200, _bytes(words[1]) if words[1:] and "(" in words[1] else body))
            case "begin", _, Exchange():
                exchange.start(Response(200))
            case "piece", _, Exchange():
                exchange.send(body)
            case "end", _, Exchange():
                exchange.finish()
            case (("runs" | "waits"), _, Exchange()):
                exchange.on_leave = lambda gone: self._leave(number, gone, runs=verb == "runs")
            case "deaf", Peer(), _:
                peer.transport.stop_taking()
            case "hears", Peer(), _:
                peer.transport.take_again()
            case "window", Peer(), _:
                peer.transport.window = number
            case "takes", Peer(), _:
                peer.transport.take(number)
            case "unsent", Peer(), _:
                peer.transport.unsent = number
            case (("leaves" | "ends"), Peer(), _):
                (peer.leave if verb == "leaves" else peer.finish)()
            case "wind", _, _:
                listener.wind_down(float(words[1]))
            case (("stop" | "abort"), _, _):
                getattr(listener, verb)()
            case _:
                raise ValueError(text)

    def _leave(self, number: int, gone: bool, *, runs: bool) -> bool:
        self._left.append(f"= {number} hears that its client {'is gone' if gone else 'has closed its side'}")
        return runs and not gone

    def news(self) -> list[str]:
        """Return what nobody has been told yet."""
        exchanges, self._asked = self.server.exchanges[self._asked :], len(self.server.exchanges)
        found = [f"= asked {each.request.method} {each.request.target}" for each in exchanges]
        found, self._left = found + self._left, []
        for name, peer in self._peers.items():
            told = [*_answers(peer), *(word for word, holds in _state(peer, self.server.listener).items() if holds)]
            prefix, before = f"{name} " * (len(self._peers) > 1), self._told[name]
            found += [prefix + each for each in told if told.count(each) > before.count(each)]
            found += [f"{prefix}= read again"] * (
                peer.transport.reading and not _ended(peer) and "= not read" in before
            )
            self._told[name] = told
        return found


def _state(peer: Peer, listener: Listener) -> dict[str, bool]:
    there = peer.transport
    return {
        "= aborted": there.aborted,
        "= closed": there.closed and not there.aborted,
        "= our side is closed": there.eof and not there.closed,
        "= not read": not there.reading and not _ended(peer),
        "= closed, and the listener keeps it": there.closed and peer.connection in listener.connections,
    }


def _ended(peer: Peer) -> bool:
    return peer.transport.closed or peer.transport.eof


def _answers(peer: Peer) -> list[str]:
    written = bytes(peer.transport.written)
    going_on = ["< 100"] * written.count(CONTINUE)
    try:
        answers = read_answers(written.replace(CONTINUE, b""))
    except http.client.IncompleteRead:
        return going_on
    return going_on + [
        f"< {number} {each.status} {'' if each.keeps else 'and the last: '}{_shown(each.body)}"
        for number, each in enumerate(answers)
    ]


def _shown(body: bytes) -> str:
    text = json.dumps(json.loads(body)) if body.startswith(b"{") else body.decode("latin-1")
    return text if len(text) < 300 else f"{text[:5]}… ({len(text)} bytes)"


def _bytes(text: str) -> bytes:
    text, _, times = text.partition(" * ")
    return _once(text) * int(times or 1)


def _once(text: str) -> bytes:
    if text == "LAST":
        return LAST
    if text == "GET /":
        return GET
    if text.startswith('"'):
        return str(json.loads(text)).encode("latin-1")
    if text.startswith("bytes("):
        return b"a" * int(text[6:-1])
    found = REQUEST.fullmatch(text)
    assert found is not None, text
    body = _once(found["body"] if (found["body"] or "").startswith("bytes(") else json.dumps(found["body"] or ""))
    headers = "".join(f"{each}\r\n" for each in re.findall(r"\[([^]]*)]", found["headers"]))
    head = get(found["target"])[:-2].replace(b"GET", found["method"].encode()).decode() + headers
    length = f"Content-Length: {len(body)}\r\n" * (found["method"] != "GET" and "Length:" not in headers)
    data = f"{head}{length}\r\n".encode() + body
    return data[: len(data) - int(found["cut"] or 0)]
