"""An archive that takes a version's place begins with the number of workers that the traffic has chosen."""

from typing import Any

import pytest

from tests.kit.daemon import StubDaemon
from tests.models.replacements import other, replace
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.extensions.scaling.service import ScalingService
from tsctl.daemon.models.registrar import Registration
from tsctl.daemon.models.settings import Overrides


@pytest.mark.parametrize(
    ("target", "overrides", "expected"),
    [
        pytest.param(0.05, {}, 3, id="the number that there is"),
        pytest.param(0.05, {"workers": 1, "max_workers": 2}, 2, id="within the new range"),
        pytest.param(0.0, {}, 1, id="the least number without a target"),
    ],
)
async def test_a_replacement_begins_with(
    target: float, overrides: dict[str, Any], expected: int, bench: StubDaemon
) -> None:
    service = ScalingService(bench.registry, bench.registrar.live.loading, FakeClock(), dict)
    bench.registrar.factory.following = [("", service.follow)]
    asked = Overrides(workers=1, max_workers=4, target_queue=target)
    old = await bench.registrar.register(Registration(url=bench.mar(), overrides=asked))
    old.pool.scale(3)

    new = await replace(bench, other(bench), **overrides)

    assert (new.pool.wanted, new.pool.ready) == (expected, expected)
