"""`greedy`: an idle worker takes all waiting jobs, up to a batch, at once."""

from tsctl.daemon.batching.policies.collector import Facts, Send


class Greedy:
    """The collector `greedy`.

    Args:
        batch_size: at least 1.
    """

    name = "greedy"

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size

    def decide(self, facts: Facts, now: float) -> Send:  # noqa: ARG002 - the time does not matter here
        if facts.waiting >= self._batch_size:
            return Send(self._batch_size, "full")
        return Send(facts.waiting, "at_once")

    def drained(self) -> None:
        """Do nothing: this collector has no state."""
