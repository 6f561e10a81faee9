"""TorchServe's metrics modes and declarations choose what `/metrics` shows; our own metrics are always there."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.extensions.exposition.reading import render
from tests.metrics.reading import values
from tsctl.daemon.config.metrics_file import DeclaredMetric, MetricsFile
from tsctl.daemon.extensions.exposition.text import MetricFamily, family, histograms, texts
from tsctl.daemon.extensions.torchserve_logs.selection import SERVER, TorchServeSelection, models_metrics
from tsctl.daemon.metrics.histogram import Histogram

LABELS = {"model_name": "m", "model_version": "1.0", "hostname": "h"}
ALL = (
    ("tsctl_queue_jobs", {"model": "m"}),
    ("Requests2XX", {"Level": "Host"}),
    ("MemoryUsed", {"Level": "Host"}),
    ("ts_inference_requests_total", LABELS),
    ("HandlerTime", {"ModelName": "m"}),
    ("Words", {"ModelName": "m"}),
)


def names_of(selection: TorchServeSelection) -> list[str]:
    families = [family(name, "gauge", name, [(dict(labels), 1)]) for name, labels in ALL]
    return [line.partition("{")[0] for line in values(render(selection.shown(families)).decode())]


@pytest.mark.parametrize(
    ("mode", "expected", "logged"),
    [
        pytest.param(None, [name for name, _ in ALL], [name for name, _ in ALL[1:]], id="no mode"),
        pytest.param("prometheus", [name for name, _ in ALL], [], id="prometheus"),
        pytest.param("log", ["tsctl_queue_jobs"], [name for name, _ in ALL[1:]], id="log"),
        pytest.param(
            "legacy",
            ["tsctl_queue_jobs", "ts_inference_requests_total"],
            ["Requests2XX", "MemoryUsed", "HandlerTime", "Words"],
            id="legacy",
        ),
    ],
)
def test_a_mode_chooses_where_metrics_go(mode: str | None, expected: list[str], logged: list[str]) -> None:
    selection = TorchServeSelection(mode)

    assert names_of(selection) == expected
    assert [name for name, _ in ALL[1:] if selection.logged(name)] == logged


def test_what_a_file_does_not_declare_is_neither_shown_nor_logged() -> None:
    selection = TorchServeSelection(None, {"MemoryUsed": ["Level"]}, {"HandlerTime"})

    assert names_of(selection) == ["tsctl_queue_jobs", "MemoryUsed", "HandlerTime"]
    assert not selection.logged("Requests2XX")
    assert not selection.logged("Words")


def test_a_name_is_declared_as_the_handler_writes_it() -> None:
    selection = TorchServeSelection(None, None, {"words per minute", "2nd"})

    assert selection.known("words_per_minute")
    assert selection.known("_2nd")


def test_the_machine_can_be_left_out() -> None:
    selection = TorchServeSelection(machine=False)

    assert "MemoryUsed" not in names_of(selection)
    assert [name for name in SERVER if not selection.known(name)].count("CPUUtilization") == 1


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        pytest.param(["m", "v", "h"], {"m": "m", "v": "1.0", "h": "h"}, id="by position"),
        pytest.param(["m"], LABELS, id="not if their number differs"),
        pytest.param(["m", "m", "m"], LABELS, id="not if two have one name"),
    ],
)
def test_a_file_renames_the_dimensions_of_the_servers_metrics(declared: list[str], expected: dict[str, str]) -> None:
    selection = TorchServeSelection(None, {"ts_inference_requests_total": declared})

    (made,) = selection.shown([family("ts_inference_requests_total", "counter", "x", [(dict(LABELS), 1)])])

    assert made.rows == [(expected, 1)]


def test_with_a_mode_the_text_is_torchserves_and_prometheus_reads_it() -> None:
    labels = {"ModelName": "m", "Level": 'a"b\\c\nd', "Hostname": "h"}
    families = [
        family("Words", "counter", "Words", [(labels, 3)]),
        histograms("Sizes", "Sizes", [({"Level": "x"}, Histogram((0.5,)))]),
        family("GPUUtilization", "gauge", "Busy", []),
        family("tsctl_x_total", "counter", "Ours", [({"model": "m"}, 1)]),
    ]

    text = b"".join(texts(families, written=TorchServeSelection("prometheus").written)).decode()

    assert text.splitlines() == [
        "# HELP Words Words",
        "# TYPE Words counter",
        r'Words{ModelName="m",Level="a\"b\\c\nd",Hostname="h",} 3.0',
        "# HELP Sizes Sizes",
        "# TYPE Sizes histogram",
        'Sizes_bucket{Level="x",le="0.5",} 0.0',
        'Sizes_bucket{Level="x",le="+Inf",} 0.0',
        'Sizes_count{Level="x",} 0.0',
        'Sizes_sum{Level="x",} 0.0',
        "# HELP GPUUtilization Busy",
        "# TYPE GPUUtilization gauge",
        "# HELP tsctl_x_total Ours",
        "# TYPE tsctl_x_total counter",
        'tsctl_x_total{model="m"} 1.0',
    ]
    read = {sample.name: sample for each in text_string_to_metric_families(text) for sample in each.samples}
    assert read["Words_total" if "Words_total" in read else "Words"].labels == labels


def test_empty_families_are_named_only_where_all_are_asked_for_and_openmetrics_stays_as_it_is() -> None:
    theirs = TorchServeSelection("prometheus").written

    def made() -> list[MetricFamily]:
        return [family("Heat", "gauge", "Heat", [({"Level": "x"}, 3)]), family("GPUUtilization", "gauge", "Busy", [])]

    named = b"".join(texts(made(), ["Heat"], written=theirs)).decode()
    openly = b"".join(texts(made(), openly=True, written=theirs)).decode()

    assert named.splitlines()[2:] == ['Heat{Level="x",} 3.0']
    assert openly.splitlines()[2:] == ['Heat{Level="x"} 3.0', "# EOF"]


@pytest.mark.parametrize(("mode", "expected"), [("prometheus", ["Words", "Heat"]), ("legacy", []), (None, ["Words"])])
def test_with_a_mode_a_declared_metric_is_named_before_its_first_value(mode: str | None, expected: list[str]) -> None:
    selection = TorchServeSelection(mode, None, {"Words", "Heat"}, {"Words": "counter", "Heat": "gauge"})

    made = list(selection.shown([family("Words", "counter", "Words", [({}, 1)])]))

    assert [each.name for each in made] == expected
    assert [each.type for each in made if each.name == "Heat"] == ["gauge" for name in expected if name == "Heat"]


FILE = MetricsFile((), (DeclaredMetric("gauge", "RequestBatchSize", "count", []),))


@pytest.mark.parametrize(
    ("file", "auto_detect", "expected"),
    [
        pytest.param(None, None, None, id="without a file all are shown"),
        pytest.param(FILE, None, {"RequestBatchSize"}, id="with one those that it declares"),
        pytest.param(FILE, True, None, id="and all where they are detected"),
        pytest.param(None, False, {"HandlerTime", "PredictionTime"}, id="TorchServe's own file declares two"),
    ],
)
def test_undeclared_metrics_of_models_are_shown_where_they_are_detected(
    file: MetricsFile | None, auto_detect: bool | None, expected: set[str] | None
) -> None:
    found = models_metrics(file, auto_detect)

    assert (None if found is None else set(found)) == expected
