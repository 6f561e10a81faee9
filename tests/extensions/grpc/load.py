"""A client of gRPC that costs next to nothing: prepared HTTP/2 frames over one connection, answers that are counted.

A client of grpc.aio costs more CPU for a call than the server: on two processors it is what is measured then. This one
sends equal calls and keeps so many in flight; it takes about 10 µs for one.
"""

import socket
import struct
import time
from typing import NamedTuple

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_MOST_WINDOW = 2**31 - 1
_DEFAULT_WINDOW = 65_535


class Load(NamedTuple):
    """What a load took.

    Attributes:
        seconds: of all calls.
        latencies: seconds of each call, in the order of their ends.
    """

    seconds: float
    latencies: list[float]


class Connection:
    """One connection, which makes equal calls.

    Args:
        address: HOST:PORT.
        method: the full name of the method, `/package.Service/Call`.
        message: the request.
    """

    def __init__(self, address: str, method: str, message: bytes) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fields = [
            (":method", "POST"), (":scheme", "http"), (":path", method), (":authority", address), ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]  # fmt: skip
        head = b"".join(_literal(name, value) for name, value in fields)
        body = struct.pack(">BI", 0, len(message)) + message
        self._head = _frame_head(len(head), _HEADERS, _END_HEADERS), head
        self._body = _frame_head(len(body), _DATA, _END_STREAM), body
        self._next = 1
        self._left = b""
        large = struct.pack(">HI", 4, _MOST_WINDOW)  # the window of each stream
        grown = struct.pack(">I", _MOST_WINDOW - _DEFAULT_WINDOW)
        self._socket.sendall(
            _PREFACE
            + _frame_head(len(large), _SETTINGS, 0) + _stream(0) + large
            + _frame_head(len(grown), _WINDOW, 0) + _stream(0) + grown
        )  # fmt: skip

    def close(self) -> None:
        self._socket.close()

    def make(self, calls: int, in_flight: int) -> Load:
        """Make the calls, so many at a time.

        Raises:
            ConnectionError: the server ended a call without an answer, or the connection.
        """
        began = time.perf_counter()
        sent: dict[int, float] = {}
        latencies: list[float] = []
        left = calls
        while len(latencies) < calls:
            out = []
            now = time.perf_counter()
            while left and len(sent) < in_flight:
                out.append(self._call())
                sent[self._next] = now
                self._next += 2
                left -= 1
            if out:
                self._socket.sendall(b"".join(out))
            ended = self._receive()
            now = time.perf_counter()
            latencies += [now - sent.pop(stream) for stream in ended]
        return Load(time.perf_counter() - began, latencies)

    def _call(self) -> bytes:
        stream = _stream(self._next)
        return self._head[0] + stream + self._head[1] + self._body[0] + stream + self._body[1]

    def _receive(self) -> list[int]:
        """Return the streams that have ended in what arrives next."""
        received = self._socket.recv(1 << 18)
        if not received:
            raise ConnectionError("the server closed the connection")
        data = self._left + received
        at, size, ended, answers = 0, len(data), [], []
        while at + 9 <= size:
            length = int.from_bytes(data[at : at + 3])
            if at + 9 + length > size:
                break
            kind, flags, stream = data[at + 3], data[at + 4], int.from_bytes(data[at + 5 : at + 9])
            if kind == _HEADERS and flags & _END_STREAM:
                ended.append(stream)
            elif kind == _SETTINGS and not flags & _ACK:
                answers.append(_frame_head(0, _SETTINGS, _ACK) + _stream(0))
            elif kind == _PING and not flags & _ACK:
                answers.append(_frame_head(length, _PING, _ACK) + _stream(0) + data[at + 9 : at + 9 + length])
            elif kind in (_RESET, _GO_AWAY):
                raise ConnectionError(f"the server sent a frame of type {kind} for stream {stream}")
            at += 9 + length
        self._left = data[at:]
        if answers:
            self._socket.sendall(b"".join(answers))
        return ended


def _frame_head(length: int, kind: int, flags: int) -> bytes:
    return length.to_bytes(3) + bytes((kind, flags))


def _stream(number: int) -> bytes:
    return number.to_bytes(4)


def _literal(name: str, value: str) -> bytes:
    """Return a header field that is not indexed (RFC 7541, section 6.2.2), without Huffman's code."""
    found = bytearray(b"\x00")
    for text in (name.encode(), value.encode()):
        if len(text) < 127:
            found.append(len(text))
        else:
            found += bytes((127, len(text) - 127))  # up to 254 bytes
        found += text
    return bytes(found)
