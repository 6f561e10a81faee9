"""The verdict of `tsctl tune`: which setting to serve, by the rounds of all settings.

A machine's speed varies: a guest of a busy host loses and regains a third for seconds at a time. So a setting is
compared with that of now within each round. The gain is the median of these ratios, and the noise half of their range.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from tsctl.render import number_text
from tsctl.tuning.choice import TriedSetting, setting_text

LEAST_GAIN = 0.03  # of the rate; less is not worth a change
LEAST_P99_GAIN = 0.10  # a 99th percentile of a few seconds is that of a few batches
SAME_RATE = 0.03
KEEPS_UP = 0.9  # of the rate of an open loop


class Turn(NamedTuple):
    """One measurement: good answers a second, latencies, processor time a request, and its duration; in seconds."""

    rate: float
    p50: float
    p99: float
    cpu: float
    seconds: float


@dataclass(slots=True, eq=False)
class MeasuredSetting:
    """A setting and its turns, one a round.

    Attributes:
        threads: of each worker; 0 while unknown.
        failure: why there are no further turns; empty if there are.
    """

    setting: TriedSetting
    threads: int = 0
    turns: list[Turn] = field(default_factory=list)
    failure: str = ""

    def median(self, index: int) -> float:
        """Return the median of a field of the turns, by its index."""
        return median(turn[index] for turn in self.turns)

    @property
    def rate(self) -> float:
        return self.median(0)

    @property
    def p99(self) -> float:
        return self.median(2)


class Gain(NamedTuple):
    """How many times as much as now.

    Attributes:
        noise: how far the rounds are from it.
    """

    times: float
    noise: float

    def is_sure(self, least: float) -> bool:
        return self.times - 1 > max(least, self.noise)


class Recommendation(NamedTuple):
    """The index of the setting to serve, None if none will do; and a sentence for people."""

    best: int | None
    sentence: str


def rate_gain(one: MeasuredSetting, now: MeasuredSetting) -> Gain:
    return _gain([a.rate / b.rate for a, b in zip(one.turns, now.turns, strict=False) if b.rate])


def p99_gain(one: MeasuredSetting, now: MeasuredSetting) -> Gain:
    """Return how many times as short the 99th percentile is."""
    return _gain([b.p99 / a.p99 for a, b in zip(one.turns, now.turns, strict=False) if a.p99])


def _gain(ratios: Sequence[float]) -> Gain:
    return Gain(median(ratios), (max(ratios) - min(ratios)) / 2) if ratios else Gain(1.0, 0.0)


def judge(found: Sequence[MeasuredSetting], slo: float | None = None, offered: float | None = None) -> Recommendation:
    """Choose a setting: the rate decides, unless the limit is missed.

    Args:
        found: that of now first.
        slo: limit on the p99 in seconds; None for no limit.
        offered: requests a second of an open loop; None for a closed one.
    """
    now = found[0]
    answering = [each for each in found if not each.failure and each.rate > 0]
    if not answering:  # 1. requests fail with each setting
        why = now.failure or "no answer comes in time"
        return Recommendation(None, f"no setting answers all of these requests; with the present one {why}")
    keeping_up = [each for each in answering if offered is None or each.rate >= KEEPS_UP * offered]
    if not keeping_up:  # 2. requests come faster than any setting answers them
        return Recommendation(None, f"no setting keeps up with {offered:g} requests a second")
    able = [each for each in keeping_up if slo is None or each.p99 <= slo]
    if not able:  # 3. each setting misses the limit
        least = min(each.p99 for each in keeping_up)
        limit = f"no setting answers 99 % of these requests within {_ms(slo or 0.0)}"
        return Recommendation(None, f"{limit}; the lowest p99 is {_ms(least)}")
    if now not in able:  # 4. only that of now does
        best = _simplest(able)
        why = f"p99 {_ms(now.p99)}, over the limit" if now in keeping_up else now.failure or "it falls behind"
        gained = f"{number_text(best.rate)} requests a second, p99 {_ms(best.p99)}; now {why}"
        return Recommendation(found.index(best), _advice(best, now, gained))
    others = [each for each in able if each is not now]
    faster = [each for each in others if rate_gain(each, now).is_sure(LEAST_GAIN)]
    if faster:  # 5. others answer more requests
        best = _simplest(faster)
        gain = rate_gain(best, now)
        gained = f"{gain.times:.2f} (± {gain.noise:.2f}) times the requests a second of now, p99 {_ms(best.p99)}"
        return Recommendation(found.index(best), _advice(best, now, f"{gained} instead of {_ms(now.p99)}"))
    as_fast = [each for each in others if rate_gain(each, now).times >= 1 - SAME_RATE]
    sooner = [each for each in as_fast if p99_gain(each, now).is_sure(LEAST_P99_GAIN)]
    if sooner:  # 6. others answer as many, and sooner
        best = min(sooner, key=lambda each: (each.p99, _simplicity(each)))
        gained = f"as many requests a second as now, p99 {_ms(best.p99)} instead of {_ms(now.p99)}"
        return Recommendation(found.index(best), _advice(best, now, gained))
    return Recommendation(0, _why_keep(others, now))  # 7. nothing is better by more than noise


def _advice(best: MeasuredSetting, now: MeasuredSetting, gained: str) -> str:
    return f"Serve it with {setting_text(best.setting, now.setting)}: {gained}."


def _why_keep(others: Sequence[MeasuredSetting], now: MeasuredSetting) -> str:
    best = max(others, key=lambda each: rate_gain(each, now).times, default=now)
    gain = rate_gain(best, now)
    if best is now or gain.times <= 1:
        return "Keep the present setting: no other answers more requests a second."
    text = setting_text(best.setting, now.setting)
    return (
        "Keep the present setting: no other is faster by more than noise."
        f" With {text} it is {gain.times:.2f} (± {gain.noise:.2f}) times the requests a second."
    )


def _simplest(able: Sequence[MeasuredSetting]) -> MeasuredSetting:
    """Return the simplest of those with the highest rate whose p99 is about the least of these."""
    most = max(each.rate for each in able)
    best = [each for each in able if each.rate >= most * (1 - SAME_RATE)]
    least = min(each.p99 for each in best)
    return min((each for each in best if each.p99 <= least * (1 + LEAST_P99_GAIN)), key=_simplicity)


def _simplicity(measured: MeasuredSetting) -> tuple[int, int]:
    return measured.setting.workers, measured.setting.batch_size


def _ms(seconds: float) -> str:
    return f"{number_text(seconds * 1000)} ms"
