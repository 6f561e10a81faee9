"""What a daemon has counted is handed to the one that replaces it: nothing is lost, and nothing counts twice."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.reading import report
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.metrics.histogram import Histogram
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.totals import IncomingCounts, OutgoingCounts, Totals
from tsctl.daemon.metrics.version import Sums, VersionMetrics
from tsctl.handlers.wire import Kind

Step = tuple[str, float]
SUMS = ("requests", "latency", "queue_time", "received", "sent")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ok", "failed", "refused", "counter", "histogram", "batch", "client", "event", "send"]),
        st.floats(0, 200),
    ),
    max_size=30,
)


def served(name: str = "m") -> tuple[Metrics, VersionMetrics]:
    metrics, version = Metrics(), VersionMetrics(name, "1.0")
    metrics.add(version)
    return metrics, version


def do(version: VersionMetrics, metrics: Metrics, word: str, value: float) -> None:
    match word:
        case "ok":
            version.codes[200] += 1
            version.ok.observe(value)
            version.named.requests += 1
            metrics.answered(200)
        case "failed":
            version.codes[503] += 1
            version.failed.observe(value)
            version.unnamed.latency += value
        case "refused":
            version.refused(QueueFull("x"))
        case "client":
            metrics.answered_to("mobile", 200 if value < 100 else 429)
        case "event":
            metrics.events["worker.crashed" if value < 100 else "model.loaded"] += 1
        case "counter":
            report(version, "counter", "Counted", value)
        case "histogram":
            report(version, "histogram", "Spread", value)
        case "batch":
            version.batches["full"] += 1
            version.batch_size.observe(value)


def send(outgoing: OutgoingCounts, incoming: IncomingCounts) -> None:
    for each in outgoing.changed():
        incoming.add_totals(msgspec.json.decode(msgspec.json.encode(each), type=Totals))


def seen(metrics: Metrics) -> dict[str, float]:
    """Make the name of a count → its number, for all that are not zero; of histograms, the buckets and the sum."""
    found: dict[str, Mapping[Any, float]] = {"answers": metrics.answers, **metrics.clients}
    for version in metrics.counted:
        for name in (name for name in dir(version) if not name.startswith("_")):
            value = getattr(version, name)
            if isinstance(value, Histogram):
                found[f"{version.name} {name}"] = {"sum": value.sum, **dict(enumerate(value.counts))}
            elif isinstance(value, Sums):
                found[f"{version.name} {name}"] = {each: getattr(value, each) for each in SUMS}
            elif isinstance(value, Counter):
                found[f"{version.name} {name}"] = value
        for series in version.emitted.series:
            total, buckets = series.total
            found[f"{series.name} {series.labels}"] = {"total": total, **dict(enumerate(buckets))}
    return {f"{name} {key}": round(n, 6) for name, table in found.items() for key, n in table.items() if n}


@given(STEPS)
def test_whenever_it_is_told_the_new_daemon_counts_what_the_old_one_has_and_its_own(steps: list[Step]) -> None:
    old, theirs = served()
    new, ours = served()
    alone, everything = served()
    outgoing, incoming = OutgoingCounts(old), IncomingCounts(new)
    for index, (word, value) in enumerate(steps):
        if word == "send":
            send(outgoing, incoming)
        else:
            do(everything, alone, word, value)
            do(*((theirs, old) if index % 2 else (ours, new)), word, value)
    send(outgoing, incoming)

    assert (seen(new), new.events) == (seen(alone), alone.events)


def test_what_has_not_changed_is_not_told_again() -> None:
    old, version = served()
    outgoing = OutgoingCounts(old)
    do(version, old, "ok", 0.1)

    assert len(list(outgoing.changed())) == 2, "the answers, and the version"
    assert list(outgoing.changed()) == []


def test_a_version_that_only_the_old_daemon_knew_keeps_its_counters() -> None:
    old, version = served("gone")
    do(version, old, "refused", 0.0)
    old.remove(version)
    new = Metrics()

    send(OutgoingCounts(old), IncomingCounts(new))

    assert seen(new)["gone refusals queue_full"] == 1


def test_the_last_minute_of_the_new_daemon_is_not_the_life_of_the_old_one() -> None:
    old, theirs = served()
    new, ours = served()
    for _ in range(100):
        do(theirs, old, "ok", 0.1)
    outgoing, incoming = OutgoingCounts(old), IncomingCounts(new)
    send(outgoing, incoming)
    do(theirs, old, "ok", 0.1)
    send(outgoing, incoming)

    assert (ours.recent(10.0).requests, ours.codes[200]) == (1, 101)


def test_counts_with_other_bounds_or_unknown_names_are_left_out() -> None:
    new, ours = served()
    said = (
        b'{"type":"counts","tables":{"answers":{"7XX":1}},"versions":[{"name":"m","version":"1.0",'
        b'"histograms":{"ok":[[1,2],3.0]},"counters":{"colours":{"red":1},"codes":{"200":2}}}]}'
    )

    IncomingCounts(new).add_totals(msgspec.json.decode(said, type=Totals))

    assert (ours.codes, sum(ours.ok.counts), new.answers["2XX"]) == ({200: 2}, 0, 0)


@pytest.mark.parametrize("told", [[2, 0.5, 0.25], [2, 0.5, 0.25, 0, 0, 7]])
def test_sums_of_a_daemon_that_knows_fewer_or_more_are_counted_as_far_as_both_know_them(told: list[float]) -> None:
    new, ours = served()
    incoming = IncomingCounts(new)
    for further in (0, 1):
        version = {"name": "m", "version": "1.0", "named": [told[0] + further, *told[1:]]}
        incoming.add_totals(msgspec.convert({"type": "counts", "versions": [version]}, type=Totals))

    sums = ours.named
    assert (sums.requests, sums.latency, sums.queue_time, sums.received, sums.sent) == (3, 0.5, 0.25, 0, 0)


@pytest.mark.parametrize("kind", ["counter", "histogram"])
def test_a_sum_beyond_any_float_keeps_no_upgrade_from_being_told(kind: Kind) -> None:
    metrics, version = served()
    for _ in range(2):
        report(version, kind, "Counted", 1.7e308)

    told = [msgspec.json.decode(msgspec.json.encode(each), type=Totals) for each in OutgoingCounts(metrics).changed()]

    assert [each.emitted for totals in told for each in totals.versions] == [[]]


def test_every_counter_and_histogram_of_a_version_is_handed_over_and_taken_over() -> None:
    old, new = VersionMetrics("m", "1.0"), VersionMetrics("m", "1.0")
    names = [name for name in dir(old) if isinstance(getattr(old, name), (Counter, Histogram, Sums))]
    own = {name: getattr(old, name) for name in names if getattr(old, name) is getattr(old, name)}  # no sum of others
    handed_over = {id(each) for each in (*old.counters.values(), *old.histograms.values())}
    assert {name for name, each in own.items() if id(each) not in handed_over} == {"named", "unnamed"}

    new.take_over(old)

    assert [name for name, each in own.items() if getattr(new, name) is not each] == []
