"""Whether batches of requests with similar lengths pay: recorded lengths under one setting, by age and by length.

Nobody but the model's author knows whether a batch is padded to its longest request, so this is an offer: the figures
hold if it is, and if the time of a batch grows with the bytes of the longest. Trials do not check them, since they
repeat one request.
"""

from collections.abc import Sequence
from statistics import median
from typing import Any

from daemon.tools.tune.frontier import Point
from daemon.tools.tune.load import LEAST_ARRIVALS, LoadPlan
from daemon.tools.tune.replay import Lengths, Overhead, replay
from daemon.tools.tune.times import PlacementTimes

WORTH_IT = 1.1  # times as many requests a second, or as short a 99th percentile
REQUESTS = 4000


def compare(
    point: Point, times: PlacementTimes, plan: LoadPlan, way: Overhead, recorded: Sequence[int], measured: int
) -> dict[str, Any] | None:
    """Return a document of what forming batches by length gains; None where it gains little.

    Args:
        point: the setting.
        recorded: the bytes of the latest requests.
        measured: those of the request that batch times were measured with.
    """
    sizes = [size for size in recorded if size]
    if len(sizes) < LEAST_ARRIVALS or not measured or point.setting.batch_size == 1:
        return None
    by_age, by_length = (
        replay(point.setting, times, plan, way, REQUESTS, Lengths(sizes, measured, grouped))
        for grouped in (False, True)
    )
    rate, p99 = by_length.throughput / by_age.throughput, by_length.p99 / by_age.p99
    if rate < WORTH_IT and (rate < 1 / WORTH_IT or p99 > 1 / WORTH_IT):
        return None
    return {"least": min(sizes), "median": median(sizes), "most": max(sizes), "throughput": rate, "p99": p99}
