"""Where we lose: every figure in which some other server does better."""

from tests.lab.benchmarks.reporting.results import Results
from tests.lab.benchmarks.workloads import WORKLOADS
from tests.lab.benchmarks.workloads.workload import CALLS

OURS = "tsctl"
MARGIN = 1.02  # less is noise


def variant(peer: str) -> bool:
    """Whether a peer is our own with other settings."""
    return peer.startswith(f"{OURS}+")


# figure → what it is, whether more is better
_COMPARED = {
    "rate": ("answers a second", True),
    "p50": ("p50", False),
    "p99": ("p99", False),
    "rate_beside": ("answers a second beside the slow model", True),
    "p50_beside": ("p50 beside the slow model", False),
    "p99_beside": ("p99 beside the slow model", False),
    "cpu": ("CPU a request", False),
    "pss": ("memory", False),
    "first": ("first answer after start", False),
    "lost": ("requests failed with the worker", False),
    "refused": ("requests refused after it", False),
    "hanging": ("requests never answered", False),
    "again": ("time until it serves again", False),
}


def at(workload: str, connections: int) -> str:
    """Return how many connections a table is about, or calls over one of them."""
    what = "call in flight" if workload == CALLS.name else "connection"
    one, _, rest = what.partition(" ")
    return f"{connections} {one}{'s' * (connections > 1)}{' ' * bool(rest)}{rest}"


def losses(results: Results) -> list[str]:
    """Sentences; none where nobody does better by more than noise."""
    return [
        sentence
        for name in results.facts["workloads"]
        for connections in results.connections(name)
        for figure in _COMPARED
        if (sentence := _loss(results, name, connections, figure))
    ]


def _loss(results: Results, workload: str, connections: int, figure: str) -> str:
    ours = results.median(workload, connections, OURS, figure)
    if ours is None:
        return ""
    what, more_is_better = _COMPARED[figure]
    better = []
    for peer in results.peers(workload):
        theirs = results.median(workload, connections, peer, figure)
        if peer == OURS or variant(peer) or theirs is None:
            continue
        ahead = theirs > ours * MARGIN if more_is_better else ours > theirs * MARGIN
        if ahead:
            better.append(f"{peer} ({_ratio(theirs, ours)})")
    if not better:
        return ""
    how = f", {at(workload, connections)}" if connections else ""
    return f"{WORKLOADS[workload].title}{how}: {what}: better is {', '.join(better)}."


def _ratio(theirs: float, ours: float) -> str:
    if not ours or not theirs or float("inf") in (ours, theirs):
        return f"{theirs:g} against {ours:g}"
    return f"{theirs / ours:.2f} × ours"
