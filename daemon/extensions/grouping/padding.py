"""Whether a model's batches are padded to their longest job: learned from batches by age, before any order is given.

    seconds = a + c·n + b·(bytes of all jobs) + p·(bytes of padding),    padding = n·longest - bytes of all

A model that pads computes the padding as the bytes: p is about b. One that handles each job by itself, or brings all
images to one size, has p = 0, whatever their bytes cost. The four are least squares with forgetting; p counts if it is
`SURE` times its standard error and at least `ALIKE` of b, and pays if the padding has taken `WORTH_IT` of the time.
"""

import math
from typing import Final

FORGETTING: Final = 0.99
LEAST: Final = 16  # batches of more than one job
SURE: Final = 5.0
ALIKE: Final = 0.3
WORTH_IT: Final = 0.15
CLIP: Final = 4.0  # times the mean: a page fault, a garbage collection
RIDGE: Final = 1e-9  # of a variable's own variance


class Padding:
    """The sums over batches: of size, bytes, padding and seconds.

    Attributes:
        batches: that were learned from.
    """

    def __init__(self) -> None:
        self.batches = 0
        self._weight = 0.0
        self._means = [0.0] * 4
        self._products = [[0.0] * 4 for _ in range(4)]  # around the means; the lower triangle

    def __repr__(self) -> str:
        return f"<Padding of {self.batches} batches: {self.share:.0%} of the time>"

    def learn_batch(self, lengths: list[int], seconds: float) -> None:
        """Learn from a batch.

        Args:
            lengths: bytes of its jobs, at least two.
            seconds: in the worker.
        """
        count, total = len(lengths), sum(lengths)
        means, products = self._means, self._products
        self.batches += 1
        if self._weight:
            seconds = min(seconds, CLIP * means[3])
        row = float(count), float(total), float(count * max(lengths) - total), seconds
        self._weight = self._weight * FORGETTING + 1.0
        step = 1.0 / self._weight
        away = [value - mean for value, mean in zip(row, means, strict=True)]
        for at in range(4):
            means[at] += away[at] * step
            for before in range(at + 1):  # West's update of weighted sums of products
                products[at][before] = FORGETTING * products[at][before] + (1.0 - step) * away[at] * away[before]

    @property
    def share(self) -> float:
        """The part of the workers' time that padding takes; 0.0 while it is not known that there is any."""
        if self.batches < LEAST or self._means[3] <= 0.0:
            return 0.0
        root = _root(self._products)
        if not root[2][2] or not root[1][1]:
            return 0.0
        of_padding = root[3][2] / root[2][2]  # seconds a byte, with all else equal
        of_bytes = (root[3][1] - root[2][1] * of_padding) / root[1][1]
        error = root[3][3] / math.sqrt(max(1.0, self._weight - 4.0)) / root[2][2]
        if of_padding <= 0.0 or of_padding < SURE * error or of_padding < ALIKE * of_bytes:
            return 0.0
        return min(1.0, of_padding * self._means[2] / self._means[3])


def _root(products: list[list[float]]) -> list[list[float]]:
    """Return the Cholesky factor; a variable that is none beside those before it has the row of zeros."""
    size = len(products)
    root = [[0.0] * size for _ in range(size)]
    for at in range(size):
        for before in range(at + 1):
            rest = products[at][before] - sum([root[at][k] * root[before][k] for k in range(before)])
            if before < at:
                root[at][before] = rest / root[before][before] if root[before][before] else 0.0
            elif rest > RIDGE * products[at][at]:
                root[at][at] = math.sqrt(rest)
    return root
