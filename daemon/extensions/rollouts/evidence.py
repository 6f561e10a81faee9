"""The evidence of a rollout's step: the counts of the versions since its beginning, in this daemon and those before.

    samples in the snapshot ──the next daemon looks──▶ record ──stop in order, or upgrade──▶ samples …

The counts of a version begin with its daemon. So a record remembers the counts at its own beginning, and samples are
the findings of a record: the trials of each condition, and the bounds of latencies that were known.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tsctl.daemon.extensions.rollouts.conditions import QUANTILE, Condition, bound_of, less, trials_of
from tsctl.daemon.extensions.rollouts.sequential import Trials
from tsctl.daemon.metrics.histogram import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The findings of a step when the snapshot was written.

    Attributes:
        elapsed: seconds since the step began.
        trials: condition → its requests.
        bounds: condition → the bound of its latency, if that was known.
        before: the counts of the versions before, since the rollout began.
    """

    elapsed: float
    trials: dict[str, Trials] = field(default_factory=dict)
    bounds: dict[str, float] = field(default_factory=dict)
    before: Counts = field(default_factory=Counts)

    @property
    def possible(self) -> bool:
        """Return whether these can have been counted: another program may have written the snapshot."""
        return self.elapsed >= 0 and all(0 <= bad <= total for total, bad in self.trials.values())


class StepRecord:
    """The counts of the versions when this daemon began with a step, and the samples from before.

    Args:
        new: counts of the new version.
        before: counts of the versions before, when this daemon began with the rollout.
        compared: compared answers, and those that differ.

    Attributes:
        began: on the daemon's clock; perhaps before the daemon itself.
    """

    def __init__(self, now: float, new: Counts, before: Counts, compared: Trials, samples: Samples | None) -> None:
        self.began = now
        self.before = before
        self._new = new
        self._compared = compared
        self._earlier: dict[str, Trials] = {}
        self._bounds: dict[str, tuple[float, Counts]] = {}  # and what the new version had counted when it was known
        if samples is None:
            return
        self.began -= samples.elapsed
        self._earlier = samples.trials
        self._bounds = {condition: (bound, new) for condition, bound in samples.bounds.items()}
        if len(samples.before.latencies) == len(before.latencies):  # else another tsctl has other buckets
            self.before = less(before, samples.before)

    def is_of(self, new: Counts) -> bool:
        """Return whether these counts go on from those at the beginning: those of a new registration do not."""
        since = less(new, self._new)
        return since.requests >= 0 and min(since.latencies) >= 0

    def trials(self, condition: Condition, new: Counts, before: Counts, compared: Trials) -> Trials | None:
        """Return the requests that a condition counts; None while none can be counted. Arguments: as of now."""
        since, bound = self._new, None
        if condition.kind == QUANTILE:
            if condition.text not in self._bounds:
                found = bound_of(condition, less(before, self.before))
                if found is None:
                    return None
                self._bounds[condition.text] = found, new
            bound, since = self._bounds[condition.text]
        agreements = Trials(compared.total - self._compared.total, compared.bad - self._compared.bad)
        found_now = trials_of(condition, less(new, since), bound, agreements)
        earlier = self._earlier.get(condition.text)
        if found_now is None or earlier is None:
            return found_now
        return Trials(found_now.total + earlier.total, found_now.bad + earlier.bad)

    def samples(
        self, conditions: Sequence[Condition], now: float, new: Counts, before: Counts, compared: Trials
    ) -> Samples:
        """Return the findings of the step by now, for the snapshot."""
        found = {each.text: self.trials(each, new, before, compared) for each in conditions}
        return Samples(
            elapsed=now - self.began,
            trials={text: trials for text, trials in found.items() if trials is not None},
            bounds={text: bound for text, (bound, _) in self._bounds.items()},
            before=less(before, self.before),
        )
