"""Workers are spread over the devices they may use, from device 0 on."""

from collections.abc import Mapping, Sequence

import pytest

from tsctl.daemon.workers.cores import Placement, choose, held_by, seen_by


@pytest.mark.parametrize(
    ("allowed", "load", "count", "devices"),
    [
        pytest.param([], {}, 1, (), id="without devices a worker is on the CPU"),
        pytest.param([0, 1], {}, 1, (0,), id="the first worker gets device 0"),
        pytest.param([0, 1], {0: 1}, 1, (1,), id="the second one the next"),
        pytest.param([0, 1], {0: 1, 1: 1}, 1, (0,), id="then it is the first one's turn again"),
        pytest.param([1, 2], {0: 0, 1: 3, 2: 2}, 1, (2,), id="only allowed devices count"),
        pytest.param([3, 1], {}, 1, (3,), id="of equals the first named"),
        pytest.param([0, 1, 2, 3], {0: 1}, 2, (1, 2), id="a worker of two gets the two least used"),
        pytest.param([0, 1, 2, 3], {1: 1, 2: 1}, 2, (0, 3), id="in the order of their preference"),
    ],
)
def test_choose(allowed: Sequence[int], load: Mapping[int, int], count: int, devices: tuple[int, ...]) -> None:
    assert choose(allowed, load, count) == devices


def test_a_place_that_was_given_back_is_taken_first() -> None:
    placement = Placement(3)
    taken = [placement.take_devices([0, 1, 2]) for _ in range(4)]

    placement.release((1,))

    assert taken == [(0,), (1,), (2,), (0,)]
    assert placement.take_devices([0, 1, 2]) == (1,)
    assert repr(placement) == "<Placement {0: 2, 1: 1, 2: 1} of 3 GPUs>"


@pytest.mark.parametrize(
    ("gpu_ids", "names", "alone", "gpu_id", "seen"),
    [
        pytest.param((), ["0", "1"], True, None, [], id="none on the CPU"),
        pytest.param((1,), ["0", "1"], True, 1, ["0", "1"], id="a worker with one finds it among all"),
        pytest.param((1,), ["2", "0"], True, 1, ["2", "0"], id="in the daemon's order"),
        pytest.param((1, 2), ["0", "1", "2"], False, 0, ["1", "2"], id="a worker with several sees these alone"),
        pytest.param((1,), ["MIG-a", "MIG-b"], True, 0, ["MIG-b"], id="CUDA finds one part of a GPU in a process"),
        pytest.param((1,), ["MIG-a", "GPU-b"], True, 0, ["GPU-b"], id="and nothing else beside one"),
        pytest.param((1,), [], True, 1, [], id="without names nothing is hidden"),
    ],
)
def test_what_a_worker_sees(
    gpu_ids: tuple[int, ...], names: list[str], alone: bool, gpu_id: int | None, seen: list[str]
) -> None:
    assert seen_by(gpu_ids, names, alone=alone) == (gpu_id, seen)


@pytest.mark.parametrize(
    ("gpu_ids", "told", "held"),
    [
        pytest.param((1,), [0, 7], {1: 7}, id="of all that it sees, its own"),
        pytest.param((2, 3), [5, 6], {2: 5, 3: 6}, id="it sees only its own"),
        pytest.param((2,), [5], {2: 5}, id="or the only one"),
        pytest.param((2,), [], {}, id="unknown"),
        pytest.param((), [], {}, id="on the CPU"),
    ],
)
def test_what_a_worker_tells_is_of_the_daemons_numbers(
    gpu_ids: tuple[int, ...], told: list[int], held: dict[int, int]
) -> None:
    assert held_by(gpu_ids, told) == held


def test_a_plan_takes_nothing() -> None:
    placement = Placement(2)
    placement.take_devices([0, 1])

    assert placement.plan([0, 1], 1, 3) == {0: 1, 1: 2}
    assert placement.next([0, 1]) == (1,)
