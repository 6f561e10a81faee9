"""The latest answers: which two are compared, and the requests a second of each model from one to the next."""

from collections import deque
from collections.abc import Mapping, Sequence

from tsctl.extension import PastRate
from tsctl.extensions.live.figures import Document, Key, ModelFigures, figures, key_of, rise

WINDOW = 5.0  # seconds that figures cover: enough for a quantile, and soon enough to see what changes
STEP = 0.5  # seconds that a value of a sparkline covers at least: a key makes the next answer come early
KEPT = 120  # values of a sparkline


class Past:
    """Takes each answer of `/tsctl/live`.

    Attributes:
        latest: the last answer, None before the first.
    """

    def __init__(self) -> None:
        self.latest: Document | None = None
        self._noted: Document | None = None  # the answer with which the last value of each sparkline ends
        self._answers: deque[Document] = deque()
        self._pace: dict[Key, deque[float]] = {}

    def take_answer(self, answer: Document) -> None:
        """Take the next answer. One of another daemon begins anew, and one whose clock was set back."""
        before = self.latest
        if before is not None and (before["started"] != answer["started"] or answer["time"] < before["time"]):
            before = self._noted = None
            self._answers.clear()
            self._pace.clear()
        if before is not None and answer["time"] == before["time"]:
            return
        self.latest = answer
        self._answers.append(answer)
        while len(self._answers) > 2 and answer["time"] - self._answers[1]["time"] >= WINDOW:
            self._answers.popleft()
        if self._noted is None or answer["time"] - self._noted["time"] >= STEP:
            if self._noted is not None:
                self._note(self._noted, answer)
            self._noted = answer

    def recall(self, rates: Mapping[Key, Sequence[PastRate]], step: float) -> None:
        """Begin the sparklines with rates from before the first answer, which has been taken.

        Args:
            step: seconds that a value of a sparkline will cover.
        """
        if self.latest is not None:
            moment = self.latest["time"]
            self._pace = {key: deque(_stretched(known, moment, step), maxlen=KEPT) for key, known in rates.items()}

    def figures(self) -> list[ModelFigures]:
        """Return the figures of each model over the last seconds; nothing before the first answer."""
        if not self._answers:
            return []
        return figures(self._answers[0] if len(self._answers) > 1 else None, self._answers[-1])

    def pace(self, key: Key) -> Sequence[float]:
        """Return a model's requests a second over steps of one answer or more, the oldest first."""
        return list(self._pace.get(key, ()))

    def _note(self, before: Document, after: Document) -> None:
        seconds = after["time"] - before["time"]
        then = {key_of(model): model["requests"]["total"] for model in before["models"]}
        kept = {}
        for model in after["models"]:
            key, total = key_of(model), model["requests"]["total"]
            kept[key] = self._pace.get(key, deque(maxlen=KEPT))
            kept[key].append(rise(then.get(key, total), total) / seconds)
        self._pace = kept


def _stretched(rates: Sequence[PastRate], moment: float, step: float) -> list[float]:
    """Return a value for each step before a moment that rates are known for; the last rate holds until then."""
    values: list[float] = []
    at = len(rates) - 1
    for back in range(KEPT):
        end = moment - back * step
        while at > 0 and rates[at - 1].time >= end:
            at -= 1
        if at < 0 or (at == 0 and end <= rates[0].time - step):
            break
        values.append(rates[at].rate)
    return values[::-1]
