"""The collectors by name."""

from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.batching.policies.collector import Collector
from tsctl.daemon.batching.policies.fixed import Fixed
from tsctl.daemon.batching.policies.greedy import Greedy
from tsctl.daemon.batching.policies.row_by_row import RowByRow
from tsctl.daemon.batching.traffic.traffic import Traffic

POLICIES = ("auto", "fixed", "greedy")
DEFAULT_POLICY = "auto"


def make_collector(
    policy: str, batch_size: int, max_delay: float, traffic: Traffic, *, rows: bool = False
) -> Collector:
    """Return a new collector; `policy` is one of `POLICIES`, `max_delay` in seconds.

    Args:
        rows: the version runs row by row: there is no batch to wait for.
    """
    traffic.halves = None  # `auto` wants it …
    if rows or policy != "auto":
        traffic.best = None  # … and this, of which it keeps what is known
    if rows:
        return RowByRow()
    if policy == "greedy":
        return Greedy(batch_size)
    if policy == "fixed":
        return Fixed(batch_size, max_delay, traffic.times)
    return Auto(batch_size, max_delay, traffic)
