"""For the fuzzing of workers' messages: what they say beside another model, whose metrics are `Told` and `ms`."""

from prometheus_client.parser import text_string_to_metric_families

from tests.extensions.exposition.reading import render
from tsctl.daemon.extensions.prometheus.families import emitted, ours
from tsctl.daemon.metrics.metrics import Metrics


def check(metrics: Metrics) -> None:
    """Check that Prometheus reads valid text with the other model's values."""
    text = render([*ours(metrics), *emitted(metrics)]).decode()
    families = list(text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    others = {each.name: each.value for each in samples if each.labels.get("ModelName") == "other"}
    clash = {
        each.name for each in families if each.name in ("Told", "ms") and each.type not in ("counter", "histogram")
    }
    assert clash or (others.get("Told", others.get("Told_total")) == 7.0 and others["ms_sum"] == 1.5), text
    for each in samples:
        counts = each.name.startswith("tsctl_") or each.name.endswith(("_bucket", "_count"))
        assert not counts or each.value >= 0.0, each
