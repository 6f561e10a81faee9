"""Ways in which a stream may arrive."""

import random
import zlib
from collections.abc import Iterator
from itertools import pairwise

_BYTEWISE = 512  # bytes; a longer stream is not sent byte by byte


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Cut a stream: in a few places that depend on it alone, so that a crash is one again, and everywhere."""
    chance = random.Random(zlib.crc32(data))
    places = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, 5)))
    yield [data[start:end] for start, end in pairwise([0, *places, len(data)]) if start < end]
    if len(data) <= _BYTEWISE:
        yield [data[at : at + 1] for at in range(len(data))]
