"""`row_by_row`: each job goes to a worker as soon as that has a free place; for versions that run rows on their own."""

from daemon.batching.policies.collector import Facts, Send


class RowByRow:
    """The collector of versions in the modes `continuous` and `async`; no setting chooses it."""

    name = "row_by_row"

    def decide(self, facts: Facts, now: float) -> Send:  # noqa: ARG002 - the time does not matter here
        count = min(facts.waiting, facts.idle)
        return Send(count, "place", over=count)

    def drained(self) -> None:
        """Do nothing: this collector has no state."""
