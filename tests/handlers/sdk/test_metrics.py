"""Each measurement of a handler is one line in TorchServe's format."""

import pytest

from tsctl.handlers.sdk.metrics import MetricsCache, MetricTypes


@pytest.fixture
def metrics() -> MetricsCache:
    cache = MetricsCache("net")
    cache.request_ids = {0: "id-a", 1: "id-b"}
    return cache


def test_a_metric_is_declared_for_its_type(metrics: MetricsCache) -> None:
    gauge = metrics.add_metric_to_cache("Heat", "C", metric_type=MetricTypes.GAUGE)
    counter = metrics.add_metric_to_cache("Heat", "C")

    assert metrics.get_metric("Heat", MetricTypes.GAUGE) is gauge
    assert metrics.get_metric("Heat") is counter
    assert metrics.cache[MetricTypes.GAUGE] == {"Heat": gauge}
