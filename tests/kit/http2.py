"""HTTP/2 byte for byte (RFC 9113, RFC 7541), for clients that do not keep to it: frames, and calls of gRPC in them."""

import struct
from collections.abc import Sequence

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 0x1, 0x4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return one frame."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header_block(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return headers in HPACK's simplest form: each literal, never indexed, at most 126 bytes long."""
    return b"".join(b"\x10%c%b%c%b" % (len(name), name, len(value), value) for name, value in headers)


def grpc_message(message: bytes) -> bytes:
    """Return a message with gRPC's prefix, not compressed."""
    return struct.pack(">BI", 0, len(message)) + message


def grpc_call(path: bytes, message: bytes, stream: int = 1) -> bytes:
    """Return the frames of a unary call, from the SETTINGS that begin a connection on."""
    headers = [
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"a"),
        (b"content-type", b"application/grpc"), (b"te", b"trailers"),
    ]  # fmt: skip
    return b"".join((
        frame(SETTINGS, 0, 0, b""),
        frame(HEADERS, END_HEADERS, stream, header_block(headers)),
        frame(DATA, END_STREAM, stream, grpc_message(message)),
    ))  # fmt: skip
