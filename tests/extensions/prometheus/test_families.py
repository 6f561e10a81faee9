"""The families of what the core has counted, and of what handlers have emitted."""

import logging

import pytest

from tests.extensions.exposition.reading import render, shown
from tests.metrics.reading import registered, report, types
from tests.metrics.test_metrics import run
from tsctl.daemon.core.job import Batch, Job
from tsctl.daemon.core.machine.cards import MIB, Card
from tsctl.daemon.extensions.prometheus import families
from tsctl.daemon.extensions.prometheus.families import emitted
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.handlers import wire

M = "ModelName=m,ModelVersion=1.0"
UNITS = {
    "CPUUtilization": "percent",
    "MemoryUsed": "megabytes",
    "MemoryAvailable": "megabytes",
    "MemoryUtilization": "percent",
    "DiskUsage": "gigabytes",
    "DiskAvailable": "gigabytes",
    "DiskUtilization": "percent",
}


@pytest.fixture
def version() -> VersionMetrics:
    return VersionMetrics("m", "1.0")


def shown_of(version: VersionMetrics) -> dict[str, float]:
    metrics = registered()
    metrics.add(version)
    return shown(emitted(metrics))


def everything(metrics: Metrics) -> dict[str, float]:
    made = (families.answered(metrics), families.sums(metrics), families.last_batches(metrics), families.ours(metrics))
    return shown([each for group in (*made, emitted(metrics)) for each in group])


def test_each_count_stands_under_its_own_name() -> None:
    metrics = registered("m/1.0")
    (version,) = metrics.versions
    version.named.received, version.unnamed.received, version.named.sent, version.unnamed.sent = 1, 2, 4, 8
    version.tally.update(retried=3, starts=5, isolated=7, failed_alone=9)
    version.expirations["queue"], version.given_up["queue"] = 11, 4
    version.codes.update({200: 20, 500: 6})
    version.exits["gpu"], version.crashing = 15, True
    metrics.answered(404)
    metrics.answered_to("mobile", 429)
    metrics.stalled(2.5)
    metrics.servers["gRPC"], metrics.internal_errors = (False, 2), 13
    metrics.events["scaled"], metrics.refusal_labels = 14, ("unit",)

    made = (families.answered, families.clients, families.ours, families.loop, families.servers)
    found = shown([*(each for of in made for each in of(metrics)), *families.events(metrics.events)])

    of = "model=m,version=1.0"
    assert (
        found.items()
        >= {
            **{f"Requests{each}{{Level=Host}}": float(each == "4XX") for each in ("2XX", "4XX", "5XX")},
            "tsctl_client_requests_total{client=mobile,code=429}": 1,
            f"tsctl_request_bytes_total{{{of}}}": 3,
            f"tsctl_answer_bytes_total{{{of}}}": 12,
            f"tsctl_requests_retried_total{{{of}}}": 3,
            f"tsctl_worker_starts_total{{{of}}}": 5,
            f"tsctl_isolated_batches_total{{{of}}}": 7,
            f"tsctl_isolated_failures_total{{{of}}}": 9,
            f"tsctl_requests_expired_total{{limit=client,{of},where=queue}}": 4,
            f"tsctl_requests_expired_total{{limit=operator,{of},where=queue}}": 7,
            "tsctl_requests_judged_total{model=m,verdict=bad,version=1.0}": 6,
            "tsctl_requests_judged_total{model=m,verdict=good,version=1.0}": 20,
            "tsctl_requests_refused_total{model=m,reason=unit,version=1.0}": 0,
            f"tsctl_worker_exits_total{{how=gpu,{of}}}": 15,
            f"tsctl_model_crashing{{{of}}}": 1,
            "tsctl_event_loop_stalls_total": 1,
            "tsctl_event_loop_stall_seconds_total": 2.5,
            "tsctl_server_up{server=gRPC}": 0,
            "tsctl_server_ends_total{server=gRPC}": 2,
            "tsctl_internal_errors_total": 13,
            "tsctl_events_total{kind=scaled,level=info}": 14,
            "tsctl_events_total{kind=started,level=info}": 0,
        }.items()
    )


def test_torchserves_counters_are_in_microseconds_and_without_a_version_one_line_for_all_of_a_model() -> None:
    metrics = registered("m/1.0", "m/2.0")
    run(metrics.versions[0])
    for version in metrics.versions:
        run(version, unnamed=True)

    assert {line: value for line, value in shown(families.sums(metrics)).items() if value} == {
        "ts_inference_requests_total{model_name=m,model_version=1.0}": 1,
        "ts_inference_requests_total{model_name=m,model_version=default}": 2,
        "ts_inference_latency_microseconds{model_name=m,model_version=1.0}": 3e6,
        "ts_inference_latency_microseconds{model_name=m,model_version=default}": 6e6,
        "ts_queue_latency_microseconds{model_name=m,model_version=1.0}": 1e6,
        "ts_queue_latency_microseconds{model_name=m,model_version=default}": 2e6,
    }


def test_torchserves_gauges_are_those_of_the_last_batch() -> None:
    metrics = registered("m/1", "m/2", "n/1")
    first, second, other = metrics.versions
    run(second, at=200.0)
    run(first, at=199.5, took=10.0)  # sent before it, and returned after it
    second.last_queue_time, second.last_inference_time = 2.0, 9.0
    other.returned(Batch(1, [Job("j", [], [], 0.0, lambda reply: None)], "full", 300.0), 0.25, 300.5)

    assert shown(families.last_batches(metrics)) == {
        "QueueTime{Level=Host}": 2000,
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
    assert not any(line.startswith("tsctl_stage") for line in lines), "its handler tells of no stage"


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


def test_a_version_that_has_had_no_worker_has_no_histogram_and_a_worker_or_a_refusal_gives_it_zeros() -> None:
    metrics = registered("idle/1.0", "loaded/1.0", "refused/1.0")
    metrics.versions[1].worker_started()
    metrics.versions[2].codes[503] += 1

    told = everything(metrics)

    for name in ("queue_time_seconds_count", "requests_judged_total", "requests_refused_total"):
        having = {each for each in ("idle", "loaded", "refused") for line in told if f"{name}{{model={each}," in line}
        assert having == {"loaded", "refused"}


def test_a_histogram_is_shown_by_its_buckets(version: VersionMetrics) -> None:
    for value in (0.02, 0.02, 20000):
        report(version, "histogram", "Took", value)

    lines = shown_of(version)
    assert lines[f"Took_sum{{{M}}}"] == 20000.04
    assert lines[f"Took_count{{{M}}}"] == lines[f"Took_bucket{{{M},le=+Inf}}"] == 3
    assert lines[f"Took_bucket{{{M},le=0.01}}"] == 0
    assert lines[f"Took_bucket{{{M},le=0.025}}"] == lines[f"Took_bucket{{{M},le=10000.0}}"] == 2
    report(version, "histogram", "Took", 1, le="x")
    assert f"Took_count{{{M},exported_le=x}}" in shown_of(version), "a bucket's label steps aside"
    buckets = list(range(len(wire.BOUNDS) + 1))
    version.emitted.add_measurements([wire.Measurement("histogram", "Whole", "", (), 1.5, buckets)])
    assert shown_of(version)[f"Whole_count{{{M}}}"] == sum(buckets)


def test_of_two_versions_types_the_later_registered_counts(caplog: pytest.LogCaptureFixture) -> None:
    metrics = registered("m/1", "m/2")
    old, new = metrics.versions
    report(old, "counter", "Seen", 1)
    report(new, "gauge", "Seen", 2)

    with caplog.at_level(logging.WARNING, "tsctl.daemon.metrics"):
        assert shown(emitted(metrics)) == {"Seen{ModelName=m,ModelVersion=2}": 2}
        assert shown(emitted(metrics)) == {"Seen{ModelName=m,ModelVersion=2}": 2}
    sentence = "metrics of handlers: `Seen` is a gauge in one version and a counter in another, and is not shown"
    assert [record.getMessage() for record in caplog.records] == [sentence]

    metrics.remove(new)
    assert shown(emitted(metrics)) == {"Seen{ModelName=m,ModelVersion=1}": 1}


def test_equal_lines_of_two_versions_become_one() -> None:
    metrics = registered("m/1", "m/2")
    for number, version in enumerate(metrics.versions, 1):
        own = {"ModelName": "m", "ModelVersion": "any"}
        report(version, "counter", "Seen", number, **own)
        report(version, "gauge", "Heat", number, **own)
        report(version, "histogram", "Took", number, **own)
    report(metrics.versions[0], "gauge", "Heat", 9, ModelName="m", ModelVersion="any")

    lines = shown(emitted(metrics))
    assert lines["Seen{ModelName=m,ModelVersion=any}"] == 3
    assert lines["Heat{ModelName=m,ModelVersion=any}"] == 9
    assert lines["Took_count{ModelName=m,ModelVersion=any}"] == 2
    assert lines["Took_sum{ModelName=m,ModelVersion=any}"] == 3


@pytest.mark.parametrize("last", [0, 1], ids=["the one registered first", "the one registered last"])
def test_of_equal_gauges_the_one_set_last_counts(last: int) -> None:
    metrics = registered("m/1", "m/2")
    own = {"ModelName": "m", "ModelVersion": "any"}
    report(metrics.versions[1 - last], "gauge", "Heat", 1, **own)
    report(metrics.versions[last], "gauge", "Heat", 2, **own)

    assert shown(emitted(metrics)) == {"Heat{ModelName=m,ModelVersion=any}": 2}


def test_a_histograms_lines_are_its_own(version: VersionMetrics, caplog: pytest.LogCaptureFixture) -> None:
    report(version, "histogram", "Took", 1)
    for name in ("Took_bucket", "Took_count", "Took_sum", "Other_count"):
        report(version, "counter", name, 5)
    metrics = registered()
    metrics.add(version)

    with caplog.at_level(logging.WARNING, "tsctl.daemon.metrics"):
        text = render(emitted(metrics)).decode()

    assert types(text) == {"Took": "histogram", "Other_count": "counter"}
    assert "# HELP Other_count Emitted by a handler\n" in text
    sentence = "metrics of handlers: `Took_{0}` is a line of the histogram `Took`, and is not shown"
    assert [each.getMessage() for each in caplog.records] == [sentence.format(n) for n in ("bucket", "count", "sum")]


def test_a_counter_may_end_like_ours_or_not() -> None:
    metrics = registered("m/1.0")
    for name in ("Seen", "Seen_total", "Seen_created"):
        report(metrics.versions[0], "counter", name, 1, "count")

    text = render(emitted(metrics)).decode()
    assert types(text) == {"Seen": "counter", "Seen_total": "counter", "Seen_created": "counter"}
    assert "# HELP Seen Emitted by a handler, in count\n" in text


def test_gpus_have_torchserves_names_and_labels() -> None:
    cards = {
        0: Card(index=2, uuid="GPU-a", name="H100", total=4096 * MIB, used=1024 * MIB, busy=37.0),
        1: Card(index=0, uuid="GPU-b", name="A2", used=MIB),
    }

    assert shown(families.gpus(cards)) == {
        "GPUUtilization{DeviceId=0,Level=Host}": 37,
        "GPUMemoryUtilization{DeviceId=0,Level=Host}": 25,
        "GPUMemoryUsed{DeviceId=0,Level=Host}": 1024,
        "GPUMemoryUsed{DeviceId=1,Level=Host}": 1,
        "tsctl_gpu_memory_total_bytes{gpu=0,name=H100,uuid=GPU-a}": 4096 * MIB,
        "tsctl_gpu_memory_total_bytes{gpu=1,name=A2,uuid=GPU-b}": 0,
    }


def test_the_machine_has_torchserves_names_and_units() -> None:
    made = list(families.machine(dict.fromkeys(UNITS, 6.0)))

    assert {each.name: each.documentation.rpartition(", ")[2] for each in made} == UNITS
    assert shown(made)["MemoryUsed{Level=Host}"] == 6.0
