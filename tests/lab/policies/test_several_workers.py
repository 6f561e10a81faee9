"""Clients of several workers: `auto` is near the best constant cut, whatever the workers share and however they begin.

`python -m tests.lab simulate` tries all rows; here are some of each kind, and the worst that the
rules before have shown.
"""

import dataclasses

import pytest

from tests.lab.policies.cores import Cores
from tests.lab.policies.workers import NEAR_ENOUGH, Case, cases, measure
from tsctl.daemon.core.clock import FakeClock

SEEDS = (1, 2)
REQUESTS = 1500
FEWER = 700
SOME = [
    ("50 + 10 n", 2, 2, {4, 8, 9, 12}),
    ("50 + 10 n", 2, 1, {2, 8}),
    ("50 + 10 n", 4, 2, {8}),
    ("8 + 0.4 n", 2, 2, {12}),
    ("8 + 0.4 n", 4, 4, {8, 16}),
    ("8 + 0.4 n", 3, 1, {12}),
    ("6 + 24 n", 3, 3, {4}),
    ("6 + 24 n", 4, 1, {4}),
]


def chosen() -> list[Case]:
    """Some rows; of those with up to a batch of clients they begin at random, of the others at once."""
    return [
        case
        for case in cases((8,))
        for curve, workers, cores, clients in SOME
        if (case.curve, case.workers, case.cores) == (curve, workers, cores)
        and case.clients in clients
        and (case.spread > 0.0) == (case.clients <= case.model.batch_size)
    ]


@pytest.mark.heavy
@pytest.mark.parametrize("case", chosen(), ids=lambda case: f"{case.clients} clients, {case.name}")
def test_clients_are_cut_as_well_as_by_the_best_constant_cut(case: Case) -> None:
    result = measure(case, SEEDS, REQUESTS, FEWER)

    assert result.ratio >= NEAR_ENOUGH, result


@pytest.mark.heavy
@pytest.mark.parametrize("cores", [2, 1], ids=["a core each", "one core"])
@pytest.mark.parametrize("clients", [4, 8, 12])
def test_batch_times_that_vary_by_thirty_percent_do_not_lead_astray(clients: int, cores: int) -> None:
    case = next(case for case in cases((8,)) if (case.cores, case.clients) == (cores, clients))
    noisy = dataclasses.replace(case, model=dataclasses.replace(case.model, noise=0.3))
    result = measure(noisy, (1, 2, 3), REQUESTS, FEWER)

    assert result.ratio >= 0.93, result


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
