"""Workers are spread over the devices they may use, from device 0 on."""

from collections.abc import Mapping, Sequence

import pytest

from tsctl.daemon.workers.gpus import Placement, choose, visible_gpus


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
    taken = [placement.take([0, 1, 2]) for _ in range(4)]

    placement.release((1,))

    assert taken == [(0,), (1,), (2,), (0,)]
    assert placement.take([0, 1, 2]) == (1,)
    assert repr(placement) == "<Placement {0: 2, 1: 1, 2: 1} of 3 GPUs>"


@pytest.mark.parametrize(
    ("visible", "count"),
    [
        pytest.param(None, 4, id="nothing hides any"),
        pytest.param("", 0, id="an empty list hides all"),
        pytest.param("-1", 0, id="so does -1"),
        pytest.param("2,0", 2, id="two by number"),
        pytest.param("0,9,1", 1, id="what follows a number that is none is hidden"),
        pytest.param("GPU-8932f937, MIG-1", 2, id="two by name"),
    ],
)
def test_cuda_visible_devices(visible: str | None, count: int) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}

    assert visible_gpus(environment, found=4) == count
