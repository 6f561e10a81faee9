"""Whether a set is faster: a decision about measured times."""

import pytest

from tsctl.daemon.extensions.optimizing.measuring.turns import Result, is_enough, judge

BUDGET = 1.0  # seconds


@pytest.mark.parametrize(
    ("without", "having", "gain", "result"),
    [
        pytest.param([1.0, 1.0], [0.5, 0.5], 2.0, Result.FASTER, id="twice as fast"),
        pytest.param([1.0, 1.0], [2.0, 2.0], 0.5, Result.NO_GAIN, id="half as fast"),
        pytest.param([1.0, 1.0], [1.0, 1.0], 1.0, Result.NO_GAIN, id="as fast is no gain"),
        pytest.param([1.02, 1.02], [1.0, 1.0], 1.02, Result.FASTER, id="the margin itself is a gain"),
        pytest.param([1.019, 1.019], [1.0, 1.0], 1.019, Result.NO_GAIN, id="less than the margin is none"),
        pytest.param([1.0, 9.0, 1.0], [7.0, 0.5, 0.5], 2.0, Result.FASTER, id="a turn that others disturb is nothing"),
        pytest.param([1.0, 9.0], [0.5, 0.5], 2.0, Result.UNSURE, id="a gain that is smaller than the noise"),
        pytest.param([1.0, 1.5], [0.5, 0.75], 2.0, Result.FASTER, id="a gain that is larger than the noise"),
        pytest.param([1.0, 1.2], [1.1, 1.1], 1 / 1.1, Result.UNSURE, id="a loss that is smaller than the noise"),
        pytest.param([1.0, 1.05], [1.0, 1.0], 1.0, Result.NO_GAIN, id="no gain on a quiet machine"),
        pytest.param([1.0, 1.2], [2.0, 2.0], 0.5, Result.NO_GAIN, id="a loss that is larger than the noise"),
    ],
)
def test_the_shortest_times_decide_if_they_are_repeatable(
    without: list[float], having: list[float], gain: float, result: Result
) -> None:
    speed = judge(without, having)

    assert speed.gain == pytest.approx(gain)
    assert speed.result is result


@pytest.mark.parametrize(
    ("without", "having", "elapsed", "enough"),
    [
        pytest.param([], [], 0.0, False, id="nothing is measured yet"),
        pytest.param([9.0], [1.0], 99.0, False, id="one turn is too few however long it took"),
        pytest.param([9.0] * 2, [1.0] * 2, 2 * BUDGET, True, id="two are enough if they are slow"),
        pytest.param([9.0] * 2, [1.0] * 2, BUDGET, False, id="and else are not"),
        pytest.param([1.0] * 3, [9.0] * 3, 0.0, True, id="a clear loss needs no more than three"),
        pytest.param([9.0] * 3, [1.0] * 3, 0.0, True, id="nor does a clear gain"),
        pytest.param([1.0] * 3, [1.0] * 3, BUDGET - 0.1, False, id="a close one goes on"),
        pytest.param([1.0] * 3, [1.0] * 3, BUDGET, True, id="until the time is spent"),
        pytest.param([1.0, 1.3, 1.6], [1.0, 1.3, 1.6], BUDGET, False, id="an unsure one for twice as long"),
        pytest.param([1.0, 1.3, 1.6], [1.0, 1.3, 1.6], 2 * BUDGET, True, id="and no longer"),
        pytest.param([1.0] * 15, [1.0] * 15, 0.0, True, id="or there were fifteen turns"),
    ],
)
def test_the_measurement_ends(without: list[float], having: list[float], elapsed: float, enough: bool) -> None:
    assert is_enough(without, having, elapsed, BUDGET) is enough


@pytest.mark.parametrize(
    ("turns", "elapsed", "enough"),
    [
        pytest.param([1.0, 1.3, 1.6], 59.9, False, id="an unsure result goes on"),
        pytest.param([1.0] + [1.3] * 20, 59.9, False, id="however many turns there were"),
        pytest.param([1.0, 1.3, 1.6], 60.0, True, id="until the patience ends"),
        pytest.param([1.0] * 3, 2 * BUDGET, True, id="a sure one ends as without patience"),
    ],
)
def test_who_has_patience_waits_for_a_sure_result(turns: list[float], elapsed: float, enough: bool) -> None:
    slower = [each * 1.1 for each in turns]
    assert is_enough(turns, slower, elapsed, BUDGET, patience=60.0) is enough
