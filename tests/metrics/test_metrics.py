"""The metrics of versions that come and go."""

import pytest

from tests.metrics.reading import registered, report, shown
from tsctl.daemon.core.job import Batch, Job
from tsctl.daemon.metrics import families
from tsctl.daemon.metrics.families import emitted
from tsctl.daemon.metrics.metrics import KEPT_VERSIONS, Metrics
from tsctl.daemon.metrics.version import VersionMetrics


def run(
    version: VersionMetrics, *, at: float = 100.0, unnamed: bool = False, status: int = 200, took: float = 2.0
) -> None:
    """One request that waits a second and takes two, of which one and a half are in the worker."""
    job = Job("j", [], [], at, lambda reply: None, unnamed=unnamed)
    version.requested(job)
    job.send()
    batch = Batch(1, [job], "full", at + 1)
    version.sent(batch)
    version.returned(batch, 1.5, at + 1 + took)
    version.answered(job, status, at + 1 + took)


def everything(metrics: Metrics) -> dict[str, float]:
    made = (families.answered(metrics), families.sums(metrics), families.last_batches(metrics), families.ours(metrics))
    return shown([each for group in (*made, emitted(metrics)) for each in group])


@pytest.mark.parametrize(
    ("status", "group"),
    [(200, "2XX"), (204, "2XX"), (299, "2XX"), (400, "4XX"), (499, "4XX"), (500, "5XX"), (507, "5XX"), (302, "5XX")],
)
def test_answers_are_counted_by_status_as_torchserve_does(status: int, group: str) -> None:
    metrics = Metrics()

    metrics.answered(status)

    counts = {f"Requests{each}{{Level=Host}}": float(each == group) for each in ("2XX", "4XX", "5XX")}
    assert shown(families.answered(metrics)) == counts


def test_torchserves_counters_are_in_microseconds() -> None:
    metrics = registered("m/1.0")
    run(metrics.versions[0])
    run(metrics.versions[0], unnamed=True)
    run(metrics.versions[0], unnamed=True)

    assert shown(families.sums(metrics)) == {
        "ts_inference_requests_total{model_name=m,model_version=1.0}": 1,
        "ts_inference_requests_total{model_name=m,model_version=default}": 2,
        "ts_inference_latency_microseconds{model_name=m,model_version=1.0}": 3e6,
        "ts_inference_latency_microseconds{model_name=m,model_version=default}": 6e6,
        "ts_queue_latency_microseconds{model_name=m,model_version=1.0}": 1e6,
        "ts_queue_latency_microseconds{model_name=m,model_version=default}": 2e6,
    }


def test_requests_without_a_version_are_one_line_for_all_versions_of_a_model() -> None:
    metrics = registered("m/1", "m/2")
    for version in metrics.versions:
        run(version, unnamed=True)

    assert shown(families.sums(metrics))["ts_inference_requests_total{model_name=m,model_version=default}"] == 2


def test_torchserves_gauges_are_those_of_the_last_batch() -> None:
    metrics = registered("m/1", "m/2", "n/1")
    first, second, other = metrics.versions
    run(second, at=200.0)
    run(first)
    other.returned(Batch(1, [Job("j", [], [], 0.0, lambda reply: None)], "full", 300.0), 0.25, 300.5)

    assert shown(families.last_batches(metrics)) == {
        "QueueTime{Level=Host}": 1000,
        "WorkerThreadTime{Level=Host}": 250,
        "PredictionTime{Level=Model,ModelName=m}": 1500,
        "PredictionTime{Level=Model,ModelName=n}": 250,
    }


def test_before_the_first_batch_there_is_no_last_one() -> None:
    assert list(families.last_batches(registered("m/1"))) == []


def test_our_histograms_are_in_seconds() -> None:
    metrics = registered("m/1.0")
    run(metrics.versions[0])

    lines = shown(families.ours(metrics))
    assert lines["tsctl_batches_total{model=m,reason=full,version=1.0}"] == 1
    assert lines["tsctl_request_latency_seconds_sum{model=m,outcome=ok,version=1.0}"] == 3
    assert lines["tsctl_request_latency_seconds_count{model=m,outcome=ok,version=1.0}"] == 1
    assert lines["tsctl_request_latency_seconds_count{model=m,outcome=error,version=1.0}"] == 0
    for name, total in {"queue_time_seconds": 1, "inference_time_seconds": 1.5}.items():
        assert lines[f"tsctl_{name}_sum{{model=m,version=1.0}}"] == total
        assert lines[f"tsctl_{name}_count{{model=m,version=1.0}}"] == 1
    assert lines["tsctl_batch_size_bucket{le=1.0,model=m,version=1.0}"] == 1
    assert lines["tsctl_queue_time_seconds_bucket{le=0.5,model=m,version=1.0}"] == 0
    assert lines["tsctl_queue_time_seconds_bucket{le=1.0,model=m,version=1.0}"] == 1


def test_what_leaves_keeps_its_counters_and_nothing_else() -> None:
    metrics = registered("m/1")
    (version,) = metrics.versions
    run(version)
    report(version, "counter", "Seen", 4)
    report(version, "gauge", "Heat", 4)
    report(version, "histogram", "Took", 4)
    report(version, "gauge", "Seen", 4)

    metrics.remove(version)

    assert {line: value for line, value in everything(metrics).items() if value} == {
        "ts_inference_requests_total{model_name=m,model_version=1}": 1,
        "ts_inference_latency_microseconds{model_name=m,model_version=1}": 3e6,
        "ts_queue_latency_microseconds{model_name=m,model_version=1}": 1e6,
        "tsctl_batches_total{model=m,reason=full,version=1}": 1,
        "tsctl_requests_total{code=200,model=m,version=1}": 1,
        "tsctl_requests_judged_total{model=m,verdict=good,version=1}": 1,
        "tsctl_handler_metrics_dropped_total{model=m,reason=type,version=1}": 1,
        "Seen{ModelName=m,ModelVersion=1}": 4,
    }
    assert [each.name for each in version.emitted.series] == ["Seen"]  # the rest is not kept in memory


def test_what_never_counted_anything_leaves_nothing() -> None:
    metrics = registered("m/1")
    report(metrics.versions[0], "gauge", "Heat", 4)

    metrics.remove(metrics.versions[0])

    assert metrics.counted == []


def test_what_comes_again_goes_on_counting() -> None:
    metrics = registered("m/1")
    (version,) = metrics.versions
    run(version)
    report(version, "counter", "Seen", 4)
    metrics.remove(version)

    again = VersionMetrics("m", "1")
    metrics.add(again)
    run(again)
    report(again, "counter", "Seen", 5)

    lines = everything(metrics)
    assert lines["ts_inference_requests_total{model_name=m,model_version=1}"] == 2
    assert lines["tsctl_batches_total{model=m,reason=full,version=1}"] == 2
    assert lines["tsctl_request_latency_seconds_count{model=m,outcome=ok,version=1}"] == 1
    assert lines["Seen{ModelName=m,ModelVersion=1}"] == 9


def test_what_comes_again_may_have_changed_a_type() -> None:
    metrics = registered("m/1")
    (version,) = metrics.versions
    report(version, "counter", "Seen", 4)
    metrics.remove(version)

    again = VersionMetrics("m", "1")
    metrics.add(again)
    report(again, "gauge", "Seen", 5)

    assert shown(emitted(metrics)) == {"Seen{ModelName=m,ModelVersion=1}": 5}
    assert again.emitted.dropped == {}


def test_a_version_that_was_replaced_takes_nothing_with_it_when_it_leaves() -> None:
    metrics = registered("m/1")
    (failed,) = metrics.versions
    run(failed)
    new = VersionMetrics("m", "1")
    metrics.add(new)

    metrics.remove(failed)

    assert metrics.versions == [new]
    assert metrics.left == []
    assert new.named.requests == 1


def test_of_those_that_left_the_oldest_are_forgotten_first() -> None:
    metrics = Metrics()
    for number in range(KEPT_VERSIONS + 2):
        version = VersionMetrics("m", str(number))
        version.named.requests = 1
        metrics.add(version)
        metrics.remove(version)

    assert [each.version for each in metrics.left] == [str(number) for number in range(2, KEPT_VERSIONS + 2)]
    assert repr(metrics) == f"<Metrics 0 versions, {KEPT_VERSIONS} left>"


def test_a_version_that_has_had_no_worker_has_no_histogram_and_a_worker_gives_it_zeros() -> None:
    metrics = registered("idle/1.0", "loaded/1.0")
    metrics.versions[1].worker_started()

    told = everything(metrics)

    assert "tsctl_queue_time_seconds_count{model=idle,version=1.0}" not in told
    assert told["tsctl_queue_time_seconds_count{model=loaded,version=1.0}"] == 0
