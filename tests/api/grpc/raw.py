"""HTTP/2 written by hand, for what no client of gRPC sends."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame: RFC 9113, 4.1."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def call_of(path: bytes) -> bytes:
    """Return the bytes of a connection that calls the method `path`, without any message."""

    def named(name: bytes, value: bytes) -> bytes:
        return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

    # Of HPACK's static table: POST, http, and the names `:path` and `:authority`.
    head = b"\x83\x86\x04" + bytes([len(path)]) + path + b"\x01\x01x"
    head += named(b"te", b"trailers") + named(b"content-type", b"application/grpc")
    return PREFACE + frame(4, 0, 0, b"") + frame(1, 5, 1, head)


ENDS_THE_LOOP = call_of(b"/\xc7/x")  # grpcio 1.85 decodes the name of a method in the loop that accepts calls
