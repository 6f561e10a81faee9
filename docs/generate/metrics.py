"""The metrics, from the families that the daemon answers for one version that has had one of everything."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric

from docs.generate.markdown import code, table
from tsctl.daemon.api import metrics as gauges
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.core.machine.host import HostMonitor
from tsctl.daemon.metrics import families
from tsctl.daemon.metrics.exposition import family
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.server.extensions import EXTENSIONS

HIDDEN = ("le",)


def metrics() -> str:
    """Write a row for each family: its name, type, labels and help."""
    rows = [(code(each.name), each.type, ", ".join(map(code, _labels(each))), each.documentation) for each in _all()]
    return f"""# Metrics

`/metrics` of the inference address, and of `--metrics-address`, answers Prometheus' text format. Names without `tsctl_` are
TorchServe's, with its labels and units; those with it count in seconds. `?name[]=NAME` asks for some. A handler's own
measurements (`context.metrics`) appear under their names, with `ModelName`, `ModelVersion` and `Hostname`; one that a
`metrics.yaml` declares has its declared dimensions and `Hostname`. `metrics_mode` may leave out all but `tsctl_…`.

{table(("name", "type", "labels", ""), rows)}"""


def _all() -> Iterator[Metric]:
    version = VersionMetrics("MODEL", "VERSION")
    version.batches["full"] = version.expirations["queue"] = 1
    version.codes[200] = version.refusals["queue_full"] = version.exits["stopped"] = 1
    version.emitted.dropped["name"] = 1
    version.sent_at = version.returned_at = 1.0
    version.emitted.stages["inference"].observe(0.0)
    everything = Metrics()
    everything.servers["SERVER"] = True, 0
    everything.add(version)
    yield from families.answered(everything)
    yield from families.clients(everything)
    yield from families.sums(everything)
    yield from families.last_batches(everything)
    yield from families.machine(HostMonitor().read())
    yield from families.gpus({0: Card(index=0, busy=0.0, used=1, total=2)})
    yield from families.ours(everything)
    yield from families.loop(everything)
    yield from families.servers(everything)
    yield from gauges.events(Counter())
    of = {"model": "", "version": ""}
    for name, text, _ in (*gauges.GAUGES, *gauges.LEARNED):
        yield family(name, "gauge", text, [(of, 0)])
    for name, kind, text in (gauges.MEMORY, gauges.PROCESSOR):
        yield family(name, kind, text, [(of | {"worker": ""}, 0)])
    yield family(*gauges.GPU_MEMORY, [(of | {"worker": "", "gpu": ""}, 0)])
    for row in (row for extension in EXTENSIONS for row in extension.metrics):
        told = f"{row.help} Only where `?name[]=` names it." if row.asked else row.help
        yield family(row.name, row.kind, told, [(dict.fromkeys(row.labels, ""), 0)])


def _labels(family: Metric) -> list[str]:
    return list(dict.fromkeys(name for sample in family.samples for name in sample.labels if name not in HIDDEN))
