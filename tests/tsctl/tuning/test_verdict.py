"""Which setting `tsctl tune` recommends: the rate decides, unless a limit is missed, and noise is no gain."""

import pytest

from tsctl.tuning.choice import TriedSetting
from tsctl.tuning.verdict import MeasuredSetting, Turn, judge, p99_gain, rate_gain


def measured(
    size: int, *rates: float, p99: float | tuple[float, ...] = 0.1, workers: int = 1, failure: str = ""
) -> MeasuredSetting:
    """Return a setting with one turn for each rate."""
    tails = p99 if isinstance(p99, tuple) else (p99,) * len(rates)
    turns = [Turn(rate, tail / 2, tail, 0.001, 2.0) for rate, tail in zip(rates, tails, strict=True)]
    return MeasuredSetting(TriedSetting(size, 100.0, "auto", workers), 1, turns, failure)


@pytest.mark.parametrize(
    ("found", "limits", "best", "sentence"),
    [
        pytest.param(
            [measured(1, failure="5 of 9 requests failed: 5 × status 503"), measured(8, failure="no")], {}, None,
            "no setting answers all of these requests; with the present one 5 of 9 requests failed: 5 × status 503",
            id="1. requests fail with each",
        ),
        pytest.param(
            [measured(1, 0.0), measured(8, 0.0)], {}, None,
            "no setting answers all of these requests; with the present one no answer comes in time",
            id="1. no answer comes",
        ),
        pytest.param(
            [measured(1, 50), measured(8, 89)], {"offered": 100.0}, None,
            "no setting keeps up with 100 requests a second", id="2. none keeps up",
        ),
        pytest.param(
            [measured(1, 100, p99=0.2), measured(8, 90, p99=0.08)], {"slo": 0.05}, None,
            "no setting answers 99 % of these requests within 50.0 ms; the lowest p99 is 80.0 ms",
            id="3. a limit for none",
        ),
        pytest.param(
            [measured(1, 100, p99=0.2), measured(8, 60, p99=0.04), measured(32, 200, p99=0.3)], {"slo": 0.05}, 1,
            "Serve it with batch size 8, auto, 1 worker: 60.0 requests a second, p99 40.0 ms; now p99 200 ms,"
            " over the limit.",
            id="4. only now misses the limit: fewer requests a second, but in time",
        ),
        pytest.param(
            [measured(1, 50), measured(8, 100)], {"offered": 100.0}, 1,
            "Serve it with batch size 8, auto, 1 worker: 100 requests a second, p99 100 ms; now it falls behind.",
            id="4. only now falls behind",
        ),
        pytest.param(
            [measured(1, failure="5 × status 503"), measured(8, 100)], {}, 1,
            "Serve it with batch size 8, auto, 1 worker: 100 requests a second, p99 100 ms; now 5 × status 503.",
            id="4. now requests fail",
        ),
        pytest.param(
            [measured(1, 100, 100, 100, p99=0.1), measured(8, 230, 231, 229, p99=0.112)], {}, 1,
            "Serve it with batch size 8, auto, 1 worker: 2.30 (± 0.01) times the requests a second of now, p99 112 ms"
            " instead of 100 ms.",
            id="5. 2.3 times the rate is not given away for 12 % of the p99",
        ),
        pytest.param(
            [measured(1, 100, p99=0.1), measured(8, 230, p99=0.112)], {"slo": 0.11}, 0,
            "Keep the present setting: no other answers more requests a second.",
            id="5. unless a limit is missed",
        ),
        pytest.param(
            [measured(1, 100), measured(8, 200), measured(32, 203), measured(8, 204, workers=2)], {}, 1,
            "Serve it with batch size 8, auto, 1 worker: 2.00 (± 0.00) times", id="5. of equals the simplest",
        ),
        pytest.param(
            [measured(1, 100), measured(8, 200, p99=0.2), measured(32, 203, p99=0.1)], {}, 2,
            "Serve it with batch size 32, auto, 1 worker: 2.03", id="5. of equals the one that answers sooner",
        ),
        pytest.param(
            [measured(1, 100, 70, 100), measured(8, 130, 91, 131)], {}, 1,
            "Serve it with batch size 8, auto, 1 worker: 1.30 (± 0.01)",
            id="5. what slows the machine slows both: it is no noise",
        ),
        pytest.param(
            [measured(1, 100, 100, 100, p99=0.1), measured(8, 100, 101, 99, p99=0.05)], {}, 1,
            "Serve it with batch size 8, auto, 1 worker: as many requests a second as now, p99 50.0 ms instead of"
            " 100 ms.",
            id="6. as many, and sooner",
        ),
        pytest.param(
            [measured(1, 100, 100, 100), measured(8, 90, 120, 108)], {}, 0,
            "Keep the present setting: no other is faster by more than noise. With batch size 8, auto, 1 worker it is"
            " 1.08 (± 0.15) times the requests a second.",
            id="7. a gain under noise is none",
        ),
        pytest.param(
            [measured(1, 100, 100), measured(8, 102, 102)], {}, 0,
            "Keep the present setting: no other is faster by more",
            id="7. nor is a very small one",
        ),
        pytest.param(
            [measured(1, 100, 100, p99=0.1), measured(8, 100, 100, p99=(0.05, 0.2))], {}, 0,
            "Keep the present setting: ",
            id="7. nor a p99 that changes from round to round",
        ),
        pytest.param(
            [measured(1, 100), measured(8, failure="the model does not load: out of memory")], {}, 0,
            "Keep the present setting: no other answers more requests a second.", id="7. the others fail",
        ),
        pytest.param(
            [measured(1, 100)], {}, 0, "Keep the present setting: no other answers more requests a second.",
            id="7. there is no other",
        ),
    ],
)  # fmt: skip
def test_judge(found: list[MeasuredSetting], limits: dict[str, float], best: int | None, sentence: str) -> None:
    verdict = judge(found, **limits)

    assert verdict.best == best
    assert verdict.sentence.startswith(sentence)


def test_gains_are_those_of_the_rounds() -> None:
    now, other = measured(1, 100, 50, 80, p99=0.1), measured(8, 200, 110, 152, p99=0.05)

    assert rate_gain(other, now) == pytest.approx((2.0, 0.15))
    assert p99_gain(other, now) == (2.0, 0.0)
    assert rate_gain(measured(8), measured(1, 100)) == (1.0, 0.0), "without turns"
