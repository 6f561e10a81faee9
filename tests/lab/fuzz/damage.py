"""Examples, damaged: what a campaign does by coverage, is done here by chance."""

import random
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

_BYTEWISE = 512  # bytes; a longer stream is not sent byte by byte


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Cut a stream: in a few places that depend on it alone, so that a crash is one again, and everywhere."""
    chance = random.Random(zlib.crc32(data))
    places = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, 5)))
    yield [data[start:end] for start, end in pairwise([0, *places, len(data)]) if start < end]
    if len(data) <= _BYTEWISE:
        yield [data[at : at + 1] for at in range(len(data))]


MOST = 4096  # bytes of an input, as in a campaign


def mutations(known: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> Iterator[bytes]:
    """Damage what is known, without end: pieces are left out, put in, doubled, joined, or changed by a byte."""
    while True:
        data = chance.choice(known)
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            at, end = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
            other = chance.choice(known)
            piece = chance.choice((
                chance.choice(words or [b""]), chance.randbytes(chance.randint(1, 4)), data[at:end] * 2, other,
                other[chance.randint(0, len(other)) :], b"",
            ))  # fmt: skip
            data = data[:at] + piece + data[chance.choice((at, end, min(len(data), at + 1))) :]
        yield data[:MOST]
