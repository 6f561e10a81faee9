"""The text of OpenMetrics, as the library's strict parser reads it, and its examples of recorded requests."""

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.extensions.exposition.reading import render
from tests.extensions.prometheus.test_exposition import everything
from tests.metrics.reading import registered, report, values
from tests.metrics.test_metrics import run
from tsctl.daemon.extensions.exposition.text import MetricFamily, texts
from tsctl.daemon.extensions.prometheus import families
from tsctl.daemon.metrics.histogram import Exemplars, LatencyExample

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def openly(made: list[MetricFamily]) -> str:
    return b"".join(texts(made, openly=True)).decode()


def test_all_metrics_are_read_by_the_strict_parser_and_are_the_same() -> None:
    metrics = registered("m/1.0", "n/2.0")
    for version in metrics.versions:
        run(version)
        report(version, "counter", "rows_total", 3, language='d"e\n')
        report(version, "gauge", "heat_celsius", 21)
        report(version, "histogram", "words", 70)
    ours = list(everything(metrics))

    text = openly(ours)

    parsed = list(text_string_to_metric_families(text))
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    kinds = {each.name: each.type for each in parsed}
    assert (kinds["tsctl_batches"], kinds["Requests2XX"], kinds["rows"]) == ("counter", "unknown", "counter")
    read = {sample.name: sample.value for each in parsed for sample in each.samples}
    assert read.keys() == {name.partition("{")[0] for name in values(render(everything(metrics)).decode())}


def test_the_latency_of_a_version_shows_its_recorded_requests() -> None:
    metrics = registered("m/1.0")
    (version,) = metrics.versions
    run(version)
    version.exemplars = Exemplars()
    version.exemplars.note("ok", LatencyExample(TRACE, 0.02, 1000.0))

    text = openly(list(families.ours(metrics)))

    (line,) = (line for line in text.splitlines() if TRACE in line)
    assert line.startswith('tsctl_request_latency_seconds_bucket{le="0.025",model="m",outcome="ok",version="1.0"}')
