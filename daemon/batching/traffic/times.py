"""Predict how long a batch takes: l(n) = per_batch + per_job·n, learned from finished batches.

The linear model is that of Nexus (l(b) = αb + β; Shen et al., SOSP '19). The fit is recursive least squares with
exponential forgetting, from running sums. Until sizes have spread, the slope is unknown: the first time is halved
between the two, and later times change only the level. A batch that took ten times too long (a page fault, a garbage
collection) counts as three times the prediction.
"""

from typing import Final

FORGETTING: Final = 0.98
CLIP: Final = 3.0  # times the prediction
SPREAD: Final = 0.05  # of the mean squared: the variance of sizes from which a slope can be estimated


class BatchTimes:
    """The linear model. Attributes: `per_batch` and `per_job` in seconds, both 0.0 until `known`."""

    def __init__(self) -> None:
        self.per_batch = 0.0
        self.per_job = 0.0
        self.known = False
        self.spread = False  # sizes have differed, so that the slope is from data
        self._w = self._x = self._y = self._xx = self._xy = 0.0

    def __repr__(self) -> str:
        guess = "" if self.spread else ", a guess"
        return f"<BatchTimes {self.per_batch * 1000:.3g} ms + {self.per_job * 1000:.3g} ms a job{guess}>"

    def of(self, size: float) -> float:
        """Predict the seconds of a batch; 0.0 while nothing is known."""
        return self.per_batch + self.per_job * size

    def add(self, size: int, seconds: float) -> None:
        """Learn from the time of a batch, in seconds as measured in the worker."""
        if not self.known:
            self.known = True
            self.per_batch, self.per_job = seconds / 2, seconds / 2 / size
        seconds = min(seconds, CLIP * self.of(size))
        self._w = self._w * FORGETTING + 1.0
        self._x = self._x * FORGETTING + size
        self._y = self._y * FORGETTING + seconds
        self._xx = self._xx * FORGETTING + size * size
        self._xy = self._xy * FORGETTING + size * seconds
        x, y = self._x / self._w, self._y / self._w
        variance = self._xx / self._w - x * x
        if variance > SPREAD * x * x:
            self.spread = True
            self.per_job = max(0.0, (self._xy / self._w - x * y) / variance)
            self.per_batch = y - self.per_job * x
            if self.per_batch < 0.0:
                self.per_batch, self.per_job = 0.0, y / x
        else:
            level = y / self.of(x)  # the known slope stays
            self.per_batch *= level
            self.per_job *= level
