"""The text is what Prometheus reads, and TorchServe's counters keep their names."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.metrics.reading import registered, render, report, types, values
from tests.metrics.test_metrics import run
from tsctl.daemon.api import metrics as gauges
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.core.machine.host import HostMonitor
from tsctl.daemon.metrics import families
from tsctl.daemon.metrics.exposition import MetricFamily, family, histograms, texts
from tsctl.daemon.metrics.families import emitted
from tsctl.daemon.metrics.histogram import Histogram
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.handlers.wire import Kind

# What promtool finds wrong with the names that TorchServe chose: they are what its users' dashboards ask for.
TORCHSERVE = re.compile(
    r"Requests[245]XX|ts_(inference|queue)_latency_microseconds|QueueTime|WorkerThreadTime|PredictionTime"
    r"|CPUUtilization|Memory(Used|Available|Utilization)|Disk(Usage|Available|Utilization)|GPU\w+"
    r"|(rows_total|heat_celsius|words) label names"  # ModelName and Hostname, on what a handler emits
)


def everything(metrics: Metrics) -> Iterator[MetricFamily]:
    yield from families.answered(metrics)
    yield from families.sums(metrics)
    yield from families.last_batches(metrics)
    yield from families.machine(HostMonitor().read())
    yield from families.gpus({0: Card(index=0, busy=1.0, used=2, total=3)})
    yield from families.ours(metrics)
    yield from emitted(metrics)


def test_a_counter_keeps_its_name() -> None:
    text = render([family("Requests2XX", "counter", "Answers", [({"Level": "Host"}, 3)])]).decode()

    assert text == '# HELP Requests2XX Answers\n# TYPE Requests2XX counter\nRequests2XX{Level="Host"} 3.0\n'
    assert render([family("Nothing", "gauge", "", [])]) == b"", "without samples"


def test_a_histograms_buckets_add_up_and_its_last_is_endless() -> None:
    histogram = Histogram((0.001, 1.0))
    histogram.add((1, 2, 3), 7.5)

    text = render([histograms("x_seconds", "Time", [({"model": "m"}, histogram)])]).decode()

    assert types(text) == {"x_seconds": "histogram"}
    assert values(text) == {
        "x_seconds_bucket{le=0.001,model=m}": 1,
        "x_seconds_bucket{le=1.0,model=m}": 3,
        "x_seconds_bucket{le=+Inf,model=m}": 6,
        "x_seconds_count{model=m}": 6,
        "x_seconds_sum{model=m}": 7.5,
    }


@pytest.mark.parametrize(
    ("names", "told"),
    [
        pytest.param([], 7, id="nothing is asked for"),
        pytest.param(["Heat"], 1, id="a family"),
        pytest.param(["Took"], 5, id="a family with all its samples"),
        pytest.param(["Took_sum", "Requests2XX"], 2, id="samples"),
        pytest.param(["Unknown"], 0, id="something that is not there"),
    ],
)
def test_names_choose_what_is_told(names: list[str], told: int) -> None:
    made = [
        family("Heat", "gauge", "", [({}, 1)]),
        family("Requests2XX", "counter", "", [({}, 1)]),
        histograms("Took", "", [({}, Histogram((1.0, 2.0)))]),
    ]

    assert len(values(render(made, names).decode())) == told


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["counter", "gauge", "histogram"]),
            st.sampled_from(["a", "a_count", "a.count", "a_total", "A b", "le", "ä"]) | st.text(max_size=8),
            st.floats(0, 1e9),
            st.dictionaries(st.sampled_from(["le", "x", "x!", "ModelName", "__"]) | st.text(max_size=4), st.text()),
        ),
        max_size=12,
    )
)
def test_whatever_handlers_report_the_text_can_be_read(reports: list[tuple[Kind, str, float, dict[str, str]]]) -> None:
    metrics = registered("m/1", "m/2")
    for index, (kind, name, value, dimensions) in enumerate(reports):
        report(metrics.versions[index % 2], kind, name, value, **dimensions)

    text = render(emitted(metrics)).decode()

    assert all(each.samples for each in text_string_to_metric_families(text))
    # As written: this parser reads a counter `a` as `a_total`, which may be there, too. Prometheus does not.
    written = [line.rpartition(" ")[0] for line in text.split("\n") if line and not line.startswith("#")]
    assert len(set(written)) == len(written)
    types(text)


@pytest.fixture
def promtool() -> Callable[[Iterable[MetricFamily]], tuple[int, list[str]]]:
    """Return a check of families by promtool, which returns its exit code and its complaints."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool, of the Debian package prometheus")

    def check(made: Iterable[MetricFamily]) -> tuple[int, list[str]]:
        done = subprocess.run([program, "check", "metrics"], input=render(made), capture_output=True)
        return done.returncode, done.stderr.decode().splitlines()

    return check


@pytest.mark.parametrize("openly", [False, True], ids=["text", "OpenMetrics"])
def test_a_large_family_is_written_in_slices_that_are_one_family_together(openly: bool) -> None:
    values = [({"model": f"m{index}"}, index) for index in range(2 * MetricFamily.at_once + 1)]
    small = b"".join(texts([family("jobs", "gauge", "Jobs", values[:3])], openly=openly))

    pieces = list(texts([family("jobs", "gauge", "Jobs", values)], openly=openly))

    assert len(pieces) == 3 + openly
    whole = b"".join(pieces).splitlines()
    assert whole[:5] == small.splitlines()[:5]
    assert [line.count(b"#") for line in whole[2 : 2 + len(values)]] == [0] * len(values)
    assert len(whole) == 2 + len(values) + openly


@pytest.mark.slow
def test_promtool_is_content_with_our_names(
    promtool: Callable[[Iterable[MetricFamily]], tuple[int, list[str]]],
) -> None:
    metrics = registered("m/1.0", "n/2.0")
    for version in metrics.versions:
        run(version)
        report(version, "counter", "rows_total", 3)
        report(version, "gauge", "rows_total", 3)

    assert promtool([*families.ours(metrics), *families.loop(metrics), *gauges.events(Counter())]) == (0, [])


@pytest.mark.slow
def test_promtool_reads_everything_and_would_only_have_named_it_otherwise(
    promtool: Callable[[Iterable[MetricFamily]], tuple[int, list[str]]],
) -> None:
    metrics = registered("m/1.0", "n/2.0")
    for version in metrics.versions:
        run(version)
        run(version, unnamed=True)
        report(version, "counter", "rows_total", 3, language='d"e\n')
        report(version, "gauge", "heat_celsius", 21)
        report(version, "histogram", "words", 70)

    code, complaints = promtool(everything(metrics))

    assert code == 3  # it could be read, else it were 1
    assert [each for each in complaints if not TORCHSERVE.match(each)] == []
