"""The request that a trial repeats: the recorded one, the archive's sample, or an image made up."""

import random
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsctl.daemon.extensions.optimizing.sets import has_defaults
from tsctl.daemon.models.archives.sample import Sample, warmup_sample

MADE_UP = "made up"
WIDTH, HEIGHT, PATCH = 500, 375, 25  # pixels


def sample_for(recorded: Sample | None, directory: Path, document: Mapping[str, Any], handler: str) -> Sample | None:
    """Return the request; None if the handler takes no images, and there is no sample. Blocks."""
    found = recorded or warmup_sample(directory, document)
    if found is None and has_defaults(handler):  # those read images
        return Sample(made_up_image(), "image/png", MADE_UP)
    return found


def made_up_image() -> bytes:
    """Return a PNG (ISO/IEC 15948) of 500 × 375 pixels, RGB, the same each time: patches under fine noise."""
    chance = random.Random(7)
    patches = [[chance.randbytes(3) for _ in range(WIDTH // PATCH)] for _ in range(HEIGHT // PATCH)]
    rows = bytearray()
    for y in range(HEIGHT):
        rows.append(0)  # no filter
        noise = chance.randbytes(3 * WIDTH)
        flat = b"".join(colour * PATCH for colour in patches[y // PATCH])
        rows += bytes((7 * value + other) >> 3 for value, other in zip(flat, noise, strict=True))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)  # 8 bits, RGB
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
