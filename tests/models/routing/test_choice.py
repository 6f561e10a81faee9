"""A version is chosen in the proportion of its weight; a key keeps its version, and moves only where it must."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.models.routing.routes import choose, choose_for

VERSIONS = st.lists(st.sampled_from([f"{number}.0" for number in range(1, 9)]), min_size=1, max_size=5, unique=True)
WEIGHT = st.floats(0.01, 1000)


@pytest.mark.parametrize(
    ("draw", "version"),
    [
        pytest.param(0.0, "1.0", id="the first from 0"),
        pytest.param(0.899, "1.0", id="up to its share"),
        pytest.param(0.9, "2.0", id="then the next"),
        pytest.param(0.999_999_999, "2.0", id="up to 1"),
    ],
)
def test_a_number_chooses_by_share(draw: float, version: str) -> None:
    assert choose([("1.0", 90.0), ("2.0", 10.0)], draw) == version


@given(versions=VERSIONS, data=st.data())
def test_any_number_chooses_one_of_the_versions(versions: list[str], data: st.DataObject) -> None:
    weights = [(version, data.draw(WEIGHT)) for version in versions]

    assert choose(weights, data.draw(st.floats(0, 1, exclude_max=True))) in versions


@pytest.mark.parametrize("weights", [[("1.0", 90.0), ("2.0", 10.0)], [("a", 1.0), ("b", 2.0), ("c", 5.0)]])
def test_keys_and_numbers_are_shared_by_weight(weights: list[tuple[str, float]]) -> None:
    random, total, count = Random(7), sum(weight for _, weight in weights), 20_000
    drawn = Counter(choose(weights, random.random()) for _ in range(count))
    keyed = Counter(choose_for(weights, "m", f"client {number}") for number in range(count))

    for version, weight in weights:
        share = weight / total
        within = 4.5 * (share * (1 - share) / count) ** 0.5  # one seed in 100 000 is outside
        assert drawn[version] / count == pytest.approx(share, abs=within)
        assert keyed[version] / count == pytest.approx(share, abs=within)


@given(versions=VERSIONS, data=st.data(), key=st.text(), factor=st.floats(1.01, 100))
def test_a_growing_weight_moves_keys_to_its_version_only(
    versions: list[str], data: st.DataObject, key: str, factor: float
) -> None:
    weights = {version: data.draw(WEIGHT) for version in versions}
    grown = data.draw(st.sampled_from(versions))

    before = choose_for([*weights.items()], "m", key)
    after = choose_for([*(weights | {grown: weights[grown] * factor}).items()], "m", key)

    assert after in (before, grown)


@given(first=st.floats(1, 99), then=st.floats(1, 99), key=st.text())
def test_of_two_versions_keys_move_in_one_direction_only(first: float, then: float, key: str) -> None:
    old, new = (choose_for([("1.0", 100 - share), ("2.0", share)], "m", key) for share in sorted((first, then)))

    assert (old, new) != ("2.0", "1.0")


@given(versions=VERSIONS, data=st.data(), key=st.text())
def test_neither_the_order_nor_the_sum_of_the_weights_matters(
    versions: list[str], data: st.DataObject, key: str
) -> None:
    weights = [(version, data.draw(st.integers(1, 100))) for version in versions]
    others = [(version, weight * 4.0) for version, weight in reversed(weights)]

    assert choose_for(weights, "m", key) == choose_for(others, "m", key)


def test_models_do_not_share_the_fate_of_a_key() -> None:
    weights = [("1.0", 50.0), ("2.0", 50.0)]

    assert {choose_for(weights, f"model {number}", "ada") for number in range(20)} == {"1.0", "2.0"}
