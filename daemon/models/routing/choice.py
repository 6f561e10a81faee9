"""The choice of a version by weights: at random, or always the same one for a key.

Both are pure. The choice for a key is weighted rendezvous hashing (Schindelhauer, Schomaker: Weighted Distributed Hash
Tables, SPAA 2005): each version draws a score that depends on the model, the version and the key alone, and is scaled
by the weight; the highest score wins. A key therefore moves only to a version whose weight grew relative to that of
its own: if one weight grows and the others stay, keys move to that version alone.
"""

import math
from collections.abc import Sequence
from hashlib import blake2b

Weights = Sequence[tuple[str, float]]  # versions, and their weights: more than 0, of any sum

_RANGE = float(2**64)


def choose(weights: Weights, draw: float) -> str:
    """Return the version at a random number.

    Args:
        weights: at least one.
        draw: from 0 up to, and without, 1.
    """
    left = draw * sum([weight for _, weight in weights])
    for version, weight in weights:
        left -= weight
        if left < 0.0:
            return version
    return weights[-1][0]  # rounding


def choose_for(weights: Weights, model: str, key: str) -> str:
    """Return the version of a key: the same one as long as the weights stay.

    Args:
        weights: at least one.
        key: the client's name, such as its address.
    """
    if len(weights) == 1:
        return weights[0][0]
    return min(weights, key=lambda each: -math.log(_uniform(model, each[0], key)) / each[1])[0]


def _uniform(model: str, version: str, key: str) -> float:
    """Return a number between 0 and 1, neither of them, that depends on the texts alone."""
    text = f"{model}\0{version}\0{key}".encode("utf-8", "surrogateescape")
    return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") + 0.5) / _RANGE
