"""The collectors by name."""

from daemon.batching.collector import Collector
from daemon.batching.fixed import Fixed
from daemon.batching.greedy import Greedy

POLICIES = ("fixed", "greedy")
DEFAULT_POLICY = "fixed"


def make_collector(policy: str, batch_size: int, max_delay: float) -> Collector:
    """Make a collector; `policy` is one of `POLICIES`, `max_delay` in seconds."""
    if policy == "greedy":
        return Greedy(batch_size)
    return Fixed(batch_size, max_delay)
