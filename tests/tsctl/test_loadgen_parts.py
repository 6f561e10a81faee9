"""The load generator's connection and order, without a network."""

import io
import json

import pytest

from tests.http.fake import FakeTransport
from tests.kit.clock import FakeClock
from tsctl.loadgen.connection import LoadConnection, LoadConnectionState
from tsctl.loadgen.order import read

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Recorder:
    """A client that writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def free(self, connection: LoadConnection) -> None:
        self.events.append("free")

    def answered(self, connection: LoadConnection, status: int, length: int) -> None:
        self.events.append(f"answered {status} with {length}")

    def lost(self, connection: LoadConnection, owing: bool) -> None:
        self.events.append("lost, owing" if owing else "lost")


class Peer:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.client = Recorder()
        self.connection = LoadConnection(self.client, b"request")
        self.transport = FakeTransport(self.connection, self.clock.soon)
        self.client.events.clear()
        self.connection.send(1.0)

    def receive(self, data: bytes) -> list[str]:
        self.transport.receive(data)
        self.clock.settle()
        return self.client.events


@pytest.fixture
def peer() -> Peer:
    return Peer()


OK = ["answered 200 with 2", "free"]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        pytest.param([ANSWER], OK, id="an answer frees the connection"),
        pytest.param([ANSWER, ANSWER], OK, id="one that nobody asked for is not counted"),
        pytest.param([CHUNKED], ["answered 200 with 3", "free"], id="a chunked one"),
        pytest.param(
            [b"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"], ["answered 503 with 0", "lost"],
            id="a connection that the server closes is not used again"),
        pytest.param([b"nonsense\r\n\r\n"], ["lost, owing"], id="no HTTP"),
    ],
)  # fmt: skip
def test_answers(pieces: list[bytes], events: list[str], peer: Peer) -> None:
    assert peer.transport.written == b"request"
    for piece in pieces:
        peer.receive(piece)

    assert peer.client.events == events
    assert (peer.connection.state is LoadConnectionState.IDLE) == ("free" in events)


@pytest.mark.parametrize("cut", range(1, len(ANSWER)))
def test_an_answer_may_come_in_pieces_again(cut: int, peer: Peer) -> None:
    for pieces in ([ANSWER], [ANSWER], [ANSWER[:cut], ANSWER[cut:]], [ANSWER]):
        if peer.connection.state is LoadConnectionState.IDLE:
            peer.connection.send(1.0)
        told = len(peer.client.events)
        for piece in pieces[:-1]:
            assert len(peer.receive(piece)) == told, "half an answer is none"
        peer.receive(pieces[-1])

    assert peer.client.events == ["answered 200 with 2", "free"] * 4


def test_an_answer_in_the_middle_of_another_is_its_body(peer: Peer) -> None:
    peer.receive(ANSWER)
    peer.connection.send(1.0)

    peer.receive(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(ANSWER))

    assert peer.receive(ANSWER)[2:] == [f"answered 200 with {len(ANSWER)}", "free"]


@pytest.mark.parametrize("data", [b"", ANSWER[:30]], ids=["before", "in the middle of"])
def test_a_connection_that_breaks_off_an_answer_owes_it(data: bytes, peer: Peer) -> None:
    peer.receive(data)

    peer.transport.lose()
    peer.clock.settle()

    assert peer.client.events == ["lost, owing"]


def order_of(body: bytes = b"", **fields: object) -> io.BytesIO:
    return io.BytesIO(json.dumps({"target": "/p", "body_bytes": len(body)} | fields).encode() + b"\n" + body)


def test_an_order_becomes_one_request() -> None:
    sending = read(order_of(b"a\nb", host="::1", port=80, headers=[["A", "b"]]))

    assert sending.request == b"POST /p HTTP/1.1\r\nHost: [::1]:80\r\nA: b\r\nContent-Length: 3\r\n\r\na\nb"
    assert sending.connect_options == {"host": "::1", "port": 80}
    assert read(order_of(unix="/run/s")).connect_options == {"path": "/run/s"}


@pytest.mark.parametrize(
    "stream", [order_of(spacing="random"), order_of(unknown=1), order_of(body_bytes=9)], ids=["value", "field", "body"]
)
def test_an_order_that_makes_no_sense_is_refused(stream: io.BytesIO) -> None:
    with pytest.raises(ValueError):
        read(stream)
