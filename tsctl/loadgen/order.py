"""The load generator's input: an order on the first line of stdin, and the body after it."""

import socket
import ssl
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import msgspec


class LoadOrder(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One run of the load generator.

    Attributes:
        unix: path of the Unix socket; empty for `host` and `port`.
        certificate: a PEM file whose first certificate is the server's own; empty for plain HTTP.
        grpc: the target is a gRPC method, and the body its message.
        target: the path of the request line.
        headers: names and values; `Content-Length` is added.
        body_bytes: length of the body after the line.
        connections: number in the closed loop; maximum in the open loop.
        rate: requests a second of the open loop; None for the closed loop.
        requests, seconds: the limits of the run; None for no limit.
        timeout: seconds that a response may take.
    """

    host: str = ""
    port: int = 0
    unix: str = ""
    certificate: str = ""
    grpc: bool = False
    target: str
    headers: list[tuple[str, str]] = []
    body_bytes: int = 0
    connections: int = 8
    rate: float | None = None
    spacing: Literal["poisson", "constant"] = "poisson"
    requests: int | None = None
    seconds: float | None = None
    timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class PreparedOrder:
    """An order, ready to send.

    Attributes:
        request: its one request, head and body; over gRPC the message.
        connect_options: for `loop.create_connection`, or with `unix` for `create_unix_connection`.
    """

    order: LoadOrder
    request: bytes
    connect_options: dict[str, Any]


def tls_context(certificate: str) -> ssl.SSLContext:
    """Return a context that trusts this certificate only; the name is not checked, as the file is the daemon's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the leaf itself is the anchor
    context.load_verify_locations(certificate)
    return context


def read(stream: BinaryIO) -> PreparedOrder:
    """Read an order and its body.

    Raises:
        ValueError: the body is shorter than `body_bytes`, or the order is not valid JSON (msgspec's errors are
            ValueErrors).
    """
    order = msgspec.json.decode(stream.readline(), type=LoadOrder)
    body = bytearray()
    while len(body) < order.body_bytes:
        piece = stream.read(order.body_bytes - len(body))
        if not piece:
            raise ValueError(f"read {len(body)} of {order.body_bytes} bytes of the body")
        body += piece
    if order.grpc:
        return PreparedOrder(order, bytes(body), {})
    host = order.host if ":" not in order.host else f"[{order.host}]"
    lines = [
        f"POST {order.target} HTTP/1.1",
        "Host: localhost" if order.unix else f"Host: {host}:{order.port}",
        *(f"{name}: {value}" for name, value in order.headers),
        f"Content-Length: {len(body)}",
    ]
    return PreparedOrder(order, "\r\n".join((*lines, "", "")).encode("latin-1") + body, connect_options(order))


def connect_options(order: LoadOrder) -> dict[str, Any]:
    """Return the arguments to connect; over TLS all connections share a context."""
    if order.unix:
        return {"path": order.unix}
    options: dict[str, Any] = {"host": order.host, "port": order.port}
    if order.certificate:
        options |= {"ssl": tls_context(order.certificate), "server_hostname": order.host}
    return options


def no_delay(sock: socket.socket) -> None:
    """Disable Nagle's algorithm, so that small requests are sent at once."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
