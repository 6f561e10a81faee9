"""HTTP/2 byte for byte (RFC 9113, RFC 7541), for what no client of gRPC sends."""

import struct
from collections.abc import Mapping

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 0x1, 0x4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame: RFC 9113, 4.1."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def grpc_call(path: bytes, message: bytes | None = None, metadata: Mapping[bytes, bytes] | None = None) -> bytes:
    """Return the bytes of a connection that calls the method `path`; None for a call without any message."""

    def named(name: bytes, value: bytes) -> bytes:
        return b"\0%c%b%c%b" % (len(name), name, len(value), value)

    # Of HPACK's static table: POST, http, and the names `:path` and `:authority`.
    head = b"\x83\x86\x04%c%b\x01\x01x" % (len(path), path)
    head += named(b"te", b"trailers") + named(b"content-type", b"application/grpc")
    head += b"".join(named(name, value) for name, value in (metadata or {}).items())
    begun = PREFACE + frame(SETTINGS, 0, 0, b"")
    if message is None:
        return begun + frame(HEADERS, END_HEADERS | END_STREAM, 1, head)
    content = struct.pack(">BI", 0, len(message)) + message  # not compressed
    return begun + frame(HEADERS, END_HEADERS, 1, head) + frame(DATA, END_STREAM, 1, content)


ENDS_THE_LOOP = grpc_call(b"/\xc7/x")  # grpcio 1.85 decodes the name of a method in the loop that accepts calls
