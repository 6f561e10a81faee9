"""Reads metrics and their text, as a test wants them; and makes what a handler reports."""

import re
import socket

from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.handlers.sdk.pending_metrics import PendingMetrics
from tsctl.handlers.wire import Kind

HOSTNAME = socket.gethostname()
_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def values(text: str) -> dict[str, float]:
    """Make `name{label=value,…}` → value, without the label that names this host; no line may come twice."""
    read: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match is not None, line
        pairs = _LABEL.findall(match[2] or "")
        labels = ",".join(f"{label}={value}" for label, value in pairs if label.lower() != "hostname")
        name = f"{match[1]}{{{labels}}}" if labels else match[1]
        assert name not in read, f"twice: {name}"
        read[name] = float(match[3])
    return read


def series_of(version: VersionMetrics) -> dict[str, float]:
    """Make `name{label=value,…}` → value of what a handler has emitted, without the host; equal ones are added."""
    read = dict[str, float]()
    for each in version.emitted.series:
        labels = (f"{label}={value}" for label, value in sorted(each.labels.items()) if label != "Hostname")
        line = f"{each.name}{{{','.join(labels)}}}"
        read[line] = read.get(line, 0.0) + each.value
    return read


def types(text: str) -> dict[str, str]:
    """Make family → type; no family may come twice."""
    heads = [(line.split()[2], line.split()[3]) for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len({name for name, _ in heads}) == len(heads)
    return dict(heads)


def report(
    version: VersionMetrics, kind: Kind, name: str, value: float, unit: str = "", /, **dimensions: str
) -> VersionMetrics:
    """Report a value of this version's handler, as its worker would send it."""
    tally = PendingMetrics()
    tally.add(kind, name, unit, dimensions.items(), value)
    version.emitted.add_measurements(tally.take_measurements())
    return version


def registered(*names: str) -> Metrics:
    """Make metrics with these versions, each as `NAME/VERSION`."""
    metrics = Metrics()
    for name in names:
        metrics.add(VersionMetrics(*name.split("/")))
    return metrics
