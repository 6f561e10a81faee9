"""The metrics of versions that come and go."""

import pytest

from tests.metrics.reading import registered, report, series_of
from tsctl.daemon.core.job import Batch, Job
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


@pytest.mark.parametrize(
    ("status", "group"),
    [(200, "2XX"), (204, "2XX"), (299, "2XX"), (400, "4XX"), (499, "4XX"), (500, "5XX"), (507, "5XX"), (302, "5XX")],
)
def test_answers_are_counted_by_status_as_torchserve_does(status: int, group: str) -> None:
    metrics = Metrics()

    metrics.answered(status)

    assert metrics.answers == {each: int(each == group) for each in ("2XX", "4XX", "5XX")}


def test_what_leaves_keeps_its_counters_and_nothing_else() -> None:
    metrics = registered("m/1")
    (version,) = metrics.versions
    run(version)
    report(version, "counter", "Seen", 4)
    report(version, "gauge", "Heat", 4)

    metrics.remove(version)

    assert (metrics.versions, metrics.counted, version.named.requests) == ([], [version], 1)
    assert [each.name for each in version.emitted.series] == ["Seen"]  # the rest is not kept in memory


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

    assert metrics.counted == [again]
    assert series_of(again) == {"Seen{ModelName=m,ModelVersion=1}": 9}
    assert (again.named.requests, again.batches, sum(again.ok.counts)) == (2, {"full": 2}, 1)


def test_what_never_counted_anything_leaves_nothing() -> None:
    metrics = registered("m/1")
    report(metrics.versions[0], "gauge", "Heat", 4)

    metrics.remove(metrics.versions[0])

    assert metrics.counted == []


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
