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

from tests.extensions.exposition.reading import render
from tests.metrics.reading import registered, report, types
from tests.metrics.test_metrics import run
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.extensions.exposition.host import HostMonitor
from tsctl.daemon.extensions.exposition.text import MetricFamily
from tsctl.daemon.extensions.prometheus import families
from tsctl.daemon.extensions.prometheus.families import emitted
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


@pytest.mark.slow
def test_promtool_is_content_with_our_names(
    promtool: Callable[[Iterable[MetricFamily]], tuple[int, list[str]]],
) -> None:
    metrics = registered("m/1.0", "n/2.0")
    for version in metrics.versions:
        run(version)
        report(version, "counter", "rows_total", 3)
        report(version, "gauge", "rows_total", 3)

    assert promtool([*families.ours(metrics), *families.loop(metrics), *families.events(Counter())]) == (0, [])


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
