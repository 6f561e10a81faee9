"""The traffic under which a setting is tried.

Recorded arrivals may be of two kinds, and confusing them misleads. Requests independent of the server (users, sensors)
are replayed at their recorded times. Clients that each wait for their response (a closed loop) send more when answered
sooner, so they are replayed as clients: the recorded number, each with the learned time from a response to its next
request.

Traffic counts as a closed loop if most requests came while there were regular connections (kept alive, one request
after the other), and the next request followed a response sooner than the model takes for a batch. Clients that open a
connection for each request are not recognized: use `--clients` for them.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

LEAST_ARRIVALS = 200


class NoLoad(Exception):
    """There is no traffic to replay; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Turnarounds:
    """The learned time from a response to the client's next request: a histogram's buckets in seconds, and weights."""

    edges: Sequence[tuple[float, float]]
    weights: Sequence[float]

    @property
    def median(self) -> float:
        half, passed = sum(self.weights) / 2, 0.0
        for (low, high), weight in zip(self.edges, self.weights, strict=True):
            if passed + weight >= half:
                return low + (high - low) * (half - passed) / weight
            passed += weight
        return self.edges[-1][1]

    def draw(self, chance: random.Random) -> float:
        low, high = chance.choices(self.edges, self.weights)[0]
        return chance.uniform(low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """The traffic to replay: one of `clients`, `times` and `rate`.

    Attributes:
        turnarounds: of the clients; None: each sends its next request at once.
        times: arrival times in seconds, recorded.
        rate: independent arrivals per second.
        text: a description for people.
    """

    text: str
    clients: int = 0
    turnarounds: Turnarounds | None = None
    times: Sequence[float] = ()
    rate: float = 0.0

    @property
    def offered(self) -> float | None:
        """Requests a second, independent of responses; None for clients that wait for responses."""
        if self.clients:
            return None
        return self.rate or (len(self.times) - 1) / max(1e-9, self.times[-1] - self.times[0])


def plan_load(trace: Mapping[str, Any], worker: Mapping[str, Any], clients: int | None, rate: float | None) -> LoadPlan:
    """Choose the traffic to replay.

    Args:
        trace, worker: as in the order.
        clients, rate: the requested load; None for the recorded one.

    Raises:
        NoLoad: too few requests were recorded, and no load was requested.
    """
    if rate is not None:
        return LoadPlan(rate=rate, text=f"assumed: {rate:g} independent requests a second")
    turnarounds = turnarounds_of(worker)
    if clients is not None:
        after = _median_text(turnarounds) if turnarounds else "at once"
        return LoadPlan(
            clients=clients,
            turnarounds=turnarounds,
            text=f"assumed: {_clients(clients)} the next request {after}",
        )
    times, regulars = trace["times"], worker["regulars"]
    if len(times) < LEAST_ARRIVALS:
        raise NoLoad(
            f"only {len(times)} requests have been recorded, and {LEAST_ARRIVALS} are needed to replay them;"
            " set the load with `--clients N` or `--rate R`"
        )
    there = int(median(regulars)) if regulars else 0
    batch = _batch_seconds(trace["batching"])
    if there and turnarounds and batch is not None and turnarounds.median <= batch:
        text = f"recorded: {_clients(there)} the next request {_median_text(turnarounds)}"
        return LoadPlan(clients=there, turnarounds=turnarounds, text=text)
    span = times[-1] - times[0]
    rate = (len(times) - 1) / max(1e-9, span)
    return LoadPlan(times=times, text=f"recorded: {len(times)} requests in {span:.0f} s, {rate:.3g} a second")


def _clients(count: int) -> str:
    if count == 1:
        return "1 client that waits for an answer, and sends"
    return f"{count} clients that wait for an answer, and send"


def _batch_seconds(batching: Mapping[str, Any]) -> float | None:
    """Return the mean batch time in seconds while the trace was recorded; None if unknown."""
    learned, sizes = batching["learned"], batching["sizes"]
    if learned["batchMs"] is None or not sizes:
        return None
    mean = sum(int(size) * count for size, count in sizes.items()) / sum(sizes.values())
    return float(learned["batchMs"] + learned["requestMs"] * mean) / 1000


def turnarounds_of(worker: Mapping[str, Any]) -> Turnarounds | None:
    buckets = worker["turnarounds"]
    if not buckets:
        return None
    return Turnarounds([(low, high) for low, high, _ in buckets], [weight for _, _, weight in buckets])


def _median_text(turnarounds: Turnarounds) -> str:
    return f"{turnarounds.median * 1000:.2g} ms later"
