"""Predict how long a batch takes: l(n) = a + c·n, learned from finished batches.

The linear model is that of Nexus (l(b) = αb + β; Shen et al., SOSP '19). The fit is recursive least squares with
exponential forgetting, from running sums. Until sizes have spread, the slope is unknown: the first time is halved
between a and c, and later times change only the level. A batch that took ten times too long (a page fault, a garbage
collection) counts as three times the prediction.
"""

FORGETTING = 0.98
CLIP = 3.0  # times the prediction
SPREAD = 0.05  # of the mean squared: the variance of sizes from which a slope can be estimated


class BatchTimes:
    """The linear model. Attributes: `a` seconds a batch, `c` seconds a job; both 0.0 until `known`."""

    def __init__(self) -> None:
        self.a = 0.0
        self.c = 0.0
        self.known = False
        self.spread = False  # sizes have differed, so that the slope is from data
        self._w = self._x = self._y = self._xx = self._xy = 0.0

    def __repr__(self) -> str:
        return f"<BatchTimes {self.a * 1000:.3g} ms + {self.c * 1000:.3g} ms a job{'' if self.spread else ', a guess'}>"

    def of(self, size: float) -> float:
        """Predict the seconds of a batch; 0.0 while nothing is known."""
        return self.a + self.c * size

    def add(self, size: int, seconds: float) -> None:
        """Learn from the time of a batch, in seconds as measured in the worker."""
        if not self.known:
            self.known = True
            self.a, self.c = seconds / 2, seconds / 2 / size
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
            self.c = max(0.0, (self._xy / self._w - x * y) / variance)
            self.a = y - self.c * x
            if self.a < 0.0:
                self.a, self.c = 0.0, y / x
        else:
            level = y / self.of(x)  # the known slope stays
            self.a *= level
            self.c *= level
