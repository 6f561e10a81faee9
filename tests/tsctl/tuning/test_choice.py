"""Which settings `tsctl tune` tries: few, and each different from that of now."""

import json
from typing import Any

import pytest

from tests.kit.said import said_in
from tsctl.tuning.choice import TriedSetting, commands, present_setting, setting_text, settings_to_try

NOW = TriedSetting(1, 100.0, "auto", 1)


def tried(now: TriedSetting = NOW, cores: int = 2, **options: Any) -> list[tuple[int, str, int]]:
    """Return the batch size, policy and workers of each."""
    found = settings_to_try(now, cores, **({"most": 32, "clients": 32} | options))
    return [(each.batch_size, each.batching, each.workers) for each in found]


@said_in("choices.txt")
def test_settings_to_try(given: str) -> str:
    options = json.loads(given)
    found = tried(TriedSetting(*options.pop("now")), **options)
    return ", ".join(f"{size} {policy} × {workers}" for size, policy, workers in found)


@pytest.mark.parametrize(
    ("delay", "batch_ms", "longer"),
    [
        pytest.param(5.0, 7.3, [8.0], id="a delay shorter than what a batch costs may hold it back"),
        pytest.param(10.0, 7.3, [], id="a longer one does not"),
        pytest.param(5.0, None, [], id="nothing was learned"),
    ],
)
def test_a_longer_delay_is_tried_where_it_may_matter(delay: float, batch_ms: float | None, longer: list[float]) -> None:
    found = settings_to_try(TriedSetting(1, delay, "auto", 1), 1, most=32, clients=32, batch_ms=batch_ms)

    assert [each.max_delay for each in found if each.max_delay != delay] == longer


def test_a_model_that_is_not_in_memory_counts_as_one_with_a_worker() -> None:
    settings = {"batchSize": 4, "maxBatchDelay": 20, "batching": "fixed"}

    assert present_setting({"settings": settings, "workers": 0}) == TriedSetting(4, 20.0, "fixed", 1)


@said_in("commands.txt")
def test_commands_change_what_differs(given: str) -> str:
    setting = TriedSetting(*json.loads(given))
    return "\n".join([setting_text(setting, NOW), *commands("net", setting, NOW)])
