"""What handlers emit is shown on `/metrics` as a metrics.yaml declares it."""

from tests.extensions.exposition.reading import shown
from tests.metrics.reading import registered, report
from tsctl.daemon.extensions.prometheus.families import emitted
from tsctl.daemon.extensions.torchserve_logs.selection import TorchServeSelection


def test_a_declared_metric_of_models_has_its_declared_dimensions_only_and_versions_add_up() -> None:
    metrics = registered("m/1.0", "m/2.0")
    for version in metrics.versions:
        report(version, "counter", "Words", 2.0, Language="de")
        report(version, "counter", "Other", 2.0)
    selection = TorchServeSelection(dimensions={"Words": ["Language"]})

    assert shown(emitted(metrics, selection.model_labels)) == {
        "Words{Language=de}": 4.0,
        "Other{ModelName=m,ModelVersion=1.0}": 2.0,
        "Other{ModelName=m,ModelVersion=2.0}": 2.0,
    }
