"""Cores that workers share."""

import pytest

from tests.kit.clock import FakeClock
from tests.lab.policies.cores import Cores


@pytest.mark.parametrize(
    ("count", "ends"),
    [
        pytest.param(2, [(1.0, 1.0), (1.5, 1.0)], id="a core each"),
        # The first runs alone for half of its work, then both at half the speed.
        pytest.param(1, [(1.5, 1.5), (2.0, 1.5)], id="one core"),
    ],
)
def test_batches_on_shared_cores_slow_each_other_while_both_run(count: int, ends: list[tuple[float, float]]) -> None:
    clock = FakeClock(start=0.0)
    cores = Cores(clock, count)
    seen: list[tuple[float, float]] = []
    cores.run(1.0, lambda took: seen.append((clock.now(), took)))
    clock.advance(0.5)
    cores.run(1.0, lambda took: seen.append((clock.now(), took)))
    clock.advance(10.0)

    assert seen == [pytest.approx(end) for end in ends]
