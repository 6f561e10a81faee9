"""What batches of requests with similar lengths would gain."""

from collections.abc import Sequence
from typing import Any

import pytest

from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.frontier import Point
from daemon.tools.tune.lengths import compare
from daemon.tools.tune.load import LoadPlan
from daemon.tools.tune.replay import Overhead
from daemon.tools.tune.times import Curve, PlacementTimes
from tests.lab.lengths import QUESTIONS

A, C = 0.008, 0.004
TIMES = PlacementTimes(1, 1, {1: Curve({size: [A + C * size] for size in (1, 8)})})
CLIENTS = LoadPlan(text="", clients=32)


def gain(
    recorded: Sequence[int], *, batch_size: int = 8, measured: int = 59, plan: LoadPlan = CLIENTS
) -> dict[str, Any] | None:
    setting = Candidate(1, 1, batch_size, 0.02, "auto")
    point = Point(setting, capacity=200.0, throughput=200.0, p50=0.1, p99=0.2, mean_batch=8.0)
    return compare(point, TIMES, plan, Overhead(), recorded, measured)


def test_texts_of_various_lengths_gain() -> None:
    found = gain(QUESTIONS * 3)

    assert found is not None
    assert (found["least"], found["median"], found["most"]) == (19, 47, 249)
    assert found["throughput"] >= 1.5 and found["p99"] <= 1.0


def test_a_fixed_rate_gains_in_latency() -> None:
    found = gain(QUESTIONS * 3, plan=LoadPlan(text="", rate=80.0))

    assert found is not None
    assert found["throughput"] == pytest.approx(1.0, abs=0.1) and found["p99"] < 0.9


@pytest.mark.parametrize(
    ("recorded", "further"),
    [
        pytest.param([59] * 300, {}, id="all of one length"),
        pytest.param([58, 59, 60] * 100, {}, id="nearly one length"),
        pytest.param(QUESTIONS, {}, id="too few"),
        pytest.param([0] * 300, {}, id="without a body"),
        pytest.param(QUESTIONS * 3, {"batch_size": 1}, id="batches of one"),
        pytest.param(QUESTIONS * 3, {"measured": 0}, id="measured without a body"),
    ],
)
def test_where_little_is_gained_nothing_is_offered(recorded: Sequence[int], further: dict[str, Any]) -> None:
    assert gain(recorded, **further) is None
