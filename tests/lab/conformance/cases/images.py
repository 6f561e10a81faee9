"""Images, made here: PNG files of one colour or two, in several modes."""

import struct
import zlib

_SIZE = 64


def png(colour_type: int, depth: int, row: bytes, palette: bytes = b"") -> bytes:
    """Encode an image of 64 equal rows (RFC 2083)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", _SIZE, _SIZE, depth, colour_type, 0, 0, 0)
    pixels = zlib.compress((b"\x00" + row) * _SIZE, 9)
    further = chunk(b"PLTE", palette) if palette else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + further + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


RED = png(2, 8, bytes((250, 20, 30)) * _SIZE)
HALVES = png(2, 8, bytes((10, 200, 30)) * (_SIZE // 2) + bytes((30, 40, 220)) * (_SIZE // 2))
WHITE = png(2, 8, bytes((255, 255, 255)) * _SIZE)
GREY = png(0, 8, bytes((90,)) * _SIZE)
TRANSPARENT = png(6, 8, bytes((250, 20, 30, 128)) * _SIZE)
PALETTE = png(3, 8, bytes((1,)) * _SIZE, bytes((0, 0, 0, 20, 30, 250)))
