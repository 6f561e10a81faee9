"""The collectors by name."""

from daemon.batching.policies.auto import Auto
from daemon.batching.policies.collector import Collector
from daemon.batching.policies.fixed import Fixed
from daemon.batching.policies.greedy import Greedy
from daemon.batching.traffic.traffic import Traffic

POLICIES = ("auto", "fixed", "greedy")
DEFAULT_POLICY = "auto"


def make_collector(policy: str, batch_size: int, max_delay: float, traffic: Traffic) -> Collector:
    """Return a new collector; `policy` is one of `POLICIES`, `max_delay` in seconds."""
    if policy == "greedy":
        return Greedy(batch_size)
    if policy == "fixed":
        return Fixed(batch_size, max_delay, traffic.times)
    return Auto(batch_size, max_delay, traffic)
