"""The core's counters and measurements, and those of handlers, as families."""

import logging
import socket
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.events.events import KINDS
from tsctl.daemon.extensions.exposition.gpu_values import gpu_values
from tsctl.daemon.extensions.exposition.text import ALL, Labels, MetricFamily, family, histograms
from tsctl.daemon.extensions.prometheus import PrometheusExtension
from tsctl.daemon.metrics.emitted import Series
from tsctl.daemon.metrics.histogram import Histogram, LatencyExample
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.version import BAD, GOOD, OTHER, REASONS, Sums, VersionMetrics
from tsctl.handlers.wire import BOUNDS

_hostname = socket.gethostname()
HOST: Labels = {"Level": "Host", "Hostname": _hostname}
NONE_REFUSED = dict.fromkeys((*REASONS.values(), OTHER), 0)  # a rate sees the first one only after a zero
_ROWS = {row.name: row for row in PrometheusExtension.metrics}


def numbers(name: str, values: Iterable[tuple[Labels, float]]) -> MetricFamily:
    """Return a family of counters or gauges, with the type and the help of its row."""
    row = _ROWS[name]
    return family(name, row.kind, row.help, values)


def spreads(
    name: str,
    values: Iterable[tuple[Labels, Histogram]],
    examples: Iterable[Mapping[int, LatencyExample]] | None = None,
) -> MetricFamily:
    """Return a family of histograms, with the help of its row."""
    return histograms(name, _ROWS[name].help, values, examples)


def answered(metrics: Metrics) -> Iterator[MetricFamily]:
    for group, count in metrics.answers.items():
        yield numbers(f"Requests{group}", [(HOST, count)])


def clients(metrics: Metrics) -> Iterator[MetricFamily]:
    """Yield the answers to each client of the keys file, by status."""
    counted = [(name, code, count) for name, codes in metrics.clients.items() for code, count in codes.items()]
    rows = [({"client": name, "code": code}, count) for name, code, count in sorted(counted)]
    yield numbers("tsctl_client_requests_total", rows)


def sums(metrics: Metrics) -> Iterator[MetricFamily]:
    """Yield TorchServe's three counters; requests without a version count under `default`, whichever that was."""
    by_labels: defaultdict[tuple[str, str], Sums] = defaultdict(Sums)
    for each in metrics.counted:
        by_labels[each.name, each.version].add(each.named)
        by_labels[each.name, "default"].add(each.unnamed)
    rows = [
        ({"model_name": name, "model_version": version, "hostname": _hostname}, total)
        for (name, version), total in by_labels.items()
    ]
    yield numbers("ts_inference_requests_total", [(labels, total.requests) for labels, total in rows])
    yield numbers("ts_inference_latency_microseconds", [(labels, total.latency * 1e6) for labels, total in rows])
    yield numbers("ts_queue_latency_microseconds", [(labels, total.queue_time * 1e6) for labels, total in rows])


def last_batches(metrics: Metrics) -> Iterator[MetricFamily]:
    """Yield TorchServe's gauges of the last batch: of the host, all models mixed, and of each model."""
    sent = max((v for v in metrics.versions if v.sent_at), key=lambda v: v.sent_at, default=None)
    if sent is not None:
        yield numbers("QueueTime", [(HOST, sent.last_queue_time * 1e3)])
    returned = sorted((v for v in metrics.versions if v.returned_at), key=lambda v: v.returned_at)
    if returned:
        yield numbers("WorkerThreadTime", [(HOST, returned[-1].last_overhead * 1e3)])
        times = {v.name: v.last_inference_time * 1e3 for v in returned}  # of versions of a model the last counts
        labelled = [({"ModelName": name, "Level": "Model", "Hostname": _hostname}, ms) for name, ms in times.items()]
        yield numbers("PredictionTime", labelled)


def machine(values: Mapping[str, float]) -> Iterator[MetricFamily]:
    """Yield processor, memory and disk; see `Host.read`."""
    for name, value in values.items():
        yield numbers(name, [(HOST, value)])


def gpus(found: Mapping[int, Card]) -> Iterator[MetricFamily]:
    for name, values in gpu_values(found).items():
        labelled = [({"Level": "Host", "DeviceId": index, "Hostname": _hostname}, value) for index, value in values]
        yield numbers(name, labelled)
    totals: list[tuple[Labels, float]] = [
        ({"gpu": str(gpu), "name": card.name, "uuid": card.uuid}, card.total) for gpu, card in found.items()
    ]
    yield numbers("tsctl_gpu_memory_total_bytes", totals)


def ours(metrics: Metrics) -> Iterator[MetricFamily]:
    """Yield histograms and batches of each version."""
    counted = [(_version(each), each) for each in metrics.counted]
    yield from _answers(counted, metrics.refusal_labels)
    batches = [(la | {"reason": why}, n) for la, v in counted for why, n in sorted(v.batches.items())]
    yield numbers("tsctl_batches_total", batches)
    expired = [
        (la | {"where": where, "limit": limit}, n)
        for la, v in counted
        for where, all_of_them in sorted(v.expirations.items())
        for limit, n in (("client", v.given_up[where]), ("operator", all_of_them - v.given_up[where]))
        if n
    ]
    yield numbers("tsctl_requests_expired_total", expired)
    yield numbers("tsctl_isolated_batches_total", [(la, v.tally["isolated"]) for la, v in counted])
    yield numbers("tsctl_isolated_failures_total", [(la, v.tally["failed_alone"]) for la, v in counted])
    # A version that has had no worker has none of these: of hundreds that are loaded on demand, most are left out.
    live = [(_version(each), each) for each in metrics.versions if _lived(each)]
    yield numbers("tsctl_model_crashing", [(labels, int(v.crashing)) for labels, v in live])
    times = [
        ((la | {"outcome": outcome}, one), {} if v.exemplars is None else v.exemplars.of(outcome))
        for la, v in live
        for outcome, one in v.latencies.items()
    ]
    latency, examples = [each for each, _ in times], [found for _, found in times]
    yield spreads("tsctl_request_latency_seconds", latency, examples)
    yield spreads("tsctl_queue_time_seconds", [(labels, v.queue_time) for labels, v in live])
    yield spreads("tsctl_inference_time_seconds", [(labels, v.inference_time) for labels, v in live])
    stages = [
        (la | {"stage": stage}, one) for la, v in live for stage, one in v.emitted.stages.items() if any(one.counts)
    ]
    yield spreads("tsctl_stage_seconds", stages)
    yield spreads("tsctl_batch_size", [(labels, v.batch_size) for labels, v in live])
    dropped = [(la | {"reason": why}, n) for la, v in counted for why, n in sorted(v.emitted.dropped.items())]
    yield numbers("tsctl_handler_metrics_dropped_total", dropped)


def loop(metrics: Metrics) -> Iterator[MetricFamily]:
    yield numbers("tsctl_event_loop_stalls_total", [({}, metrics.stalls)])
    yield numbers("tsctl_event_loop_stall_seconds_total", [({}, metrics.stalled_seconds)])


def servers(metrics: Metrics) -> Iterator[MetricFamily]:
    """Yield the unexpected ends of servers, and the exceptions that nothing has caught."""
    found = [({"server": name}, up, ends) for name, (up, ends) in metrics.servers.items()]
    yield numbers("tsctl_server_up", [(labels, int(up)) for labels, up, _ in found])
    yield numbers("tsctl_server_ends_total", [(labels, ends) for labels, _, ends in found])
    yield numbers("tsctl_internal_errors_total", [({}, metrics.internal_errors)])


def events(counts: Counter[str]) -> Iterator[MetricFamily]:
    """Yield the daemon's events by kind, with a zero for those that have not come, so that a rate sees the first."""
    yield numbers("tsctl_events_total", [({"kind": kind, "level": KINDS[kind].level}, counts[kind]) for kind in KINDS])


def _answers(counted: Sequence[tuple[Labels, VersionMetrics]], labels: Sequence[str]) -> Iterator[MetricFamily]:
    """Yield the requests of each version by what became of them, and the lives of its workers."""
    codes = [(la | {"code": str(code)}, n) for la, v in counted for code, n in sorted(v.codes.items())]
    yield numbers("tsctl_requests_total", codes)
    judged = [
        (la | {"verdict": verdict}, n)
        for la, v in counted
        if _lived(v)
        for verdict, n in ((BAD, v.counts.errors), (GOOD, v.counts.judged - v.counts.errors))
    ]
    yield numbers("tsctl_requests_judged_total", judged)
    zeros: dict[bool, dict[str, int]] = {
        True: NONE_REFUSED | dict.fromkeys(labels, 0),
        False: {},
    }  # as for the histograms
    refused = [
        (la | {"reason": why}, n) for la, v in counted for why, n in sorted((zeros[_lived(v)] | v.refusals).items())
    ]
    yield numbers("tsctl_requests_refused_total", refused)
    yield numbers("tsctl_requests_retried_total", [(la, v.tally["retried"]) for la, v in counted])
    yield numbers("tsctl_worker_starts_total", [(la, v.tally["starts"]) for la, v in counted])
    received = [(la, v.named.received + v.unnamed.received) for la, v in counted]
    yield numbers("tsctl_request_bytes_total", received)
    sent = [(la, v.named.sent + v.unnamed.sent) for la, v in counted]
    yield numbers("tsctl_answer_bytes_total", sent)
    exits = [(la | {"how": how}, n) for la, v in counted for how, n in sorted(v.exits.items())]
    yield numbers("tsctl_worker_exits_total", exits)


def _lived(each: VersionMetrics) -> bool:
    """Return whether a version has had a worker, or a request."""
    return bool(each.tally["starts"] or each.codes)


def _version(each: VersionMetrics) -> Labels:
    return {"model": each.name, "version": each.version}


_log = logging.getLogger("tsctl.daemon.metrics")


def emitted(metrics: Metrics, labels_of: Callable[[str, Labels], Labels] = ALL.model_labels) -> Iterator[MetricFamily]:
    """Yield the families.

    Where versions differ in the type of a name, the version registered last is right, and
    the others' series are hidden until it has gone. Series with the same labels, as those of two
    versions may have, become one: counters and histograms are summed, of gauges the last one counts.

    Args:
        labels_of: a name and the labels of a series → those that are shown.
    """
    by_name: dict[str, list[Series]] = {}
    live = [each for version in reversed(metrics.versions) for each in version.emitted.series]
    left = [each for version in metrics.left for each in version.emitted.counters]
    for series in (*live, *left):
        same = by_name.setdefault(series.name, [])
        if same and same[0].kind != series.kind:
            _warn(
                metrics,
                series.name,
                f"`{series.name}` is a {same[0].kind} in one version and a {series.kind} in another",
            )
        else:
            same.append(series)
    lines = {name: group for name, group in by_name.items() if not _part_of_histogram(metrics, name, by_name)}
    for name, group in lines.items():
        text = f"Emitted by a handler{f', in {group[0].unit}' if group[0].unit else ''}"
        kind, together = group[0].kind, _together(group, labels_of)
        if kind == "histogram":
            yield histograms(name, text, [(labels, _added_up(same)) for labels, same in together])
        elif kind == "counter":
            yield family(name, kind, text, [(labels, sum(each.value for each in same)) for labels, same in together])
        else:
            yield family(name, kind, text, [(labels, same[-1].value) for labels, same in together])


def _part_of_histogram(metrics: Metrics, name: str, by_name: dict[str, list[Series]]) -> bool:
    """Return whether a name is that of a line of a histogram that is present, too."""
    for suffix in ("_bucket", "_count", "_sum"):
        whole = by_name.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if whole and whole[0].kind == "histogram":
            _warn(metrics, name, f"`{name}` is a line of the histogram `{name.removesuffix(suffix)}`")
            return True
    return False


def _together(
    group: Iterable[Series], labels_of: Callable[[str, Labels], Labels]
) -> Iterator[tuple[Labels, list[Series]]]:  # fmt: skip
    """Return the series by the labels that are shown, those of each in the order of their times."""
    found: dict[tuple[tuple[str, str], ...], tuple[Labels, list[Series]]] = {}
    for each in sorted(group, key=lambda series: series.stamp):
        labels = labels_of(each.name, each.labels)
        found.setdefault(tuple(sorted(labels.items())), (dict(labels), []))[1].append(each)
    return iter(found.values())


def _added_up(same: Iterable[Series]) -> Histogram:
    whole = Histogram(BOUNDS)
    for each in same:
        whole.add(each.histogram.counts, each.histogram.sum)
    return whole


def _warn(metrics: Metrics, name: str, sentence: str) -> None:
    if name not in metrics.warned:
        metrics.warned.add(name)
        _log.warning("metrics of handlers: %s, and is not shown", sentence)
