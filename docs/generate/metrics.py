"""The metrics, from the tables of the extensions: those of the core have their names where they are shown."""

from docs.generate.markdown import code, table
from tsctl.daemon.server.extensions import EXTENSIONS


def metrics() -> str:
    """Write a row for each family: its name, type, labels and help."""
    rows = [
        (
            code(row.name), row.kind, ", ".join(map(code, row.labels)),
            f"{row.help} Only where `?name[]=` names it." if row.asked else row.help,
        )
        for row in (row for extension in EXTENSIONS for row in extension.metrics)
    ]  # fmt: skip
    return f"""# Metrics

`/metrics` of the inference address, and of `--metrics-address`, answers Prometheus' text format. Names without `tsctl_` are
TorchServe's, with its labels and units; those with it count in seconds. `?name[]=NAME` asks for some. A handler's own
measurements (`context.metrics`) appear under their names, with `ModelName`, `ModelVersion` and `Hostname`; one that a
`metrics.yaml` declares has its declared dimensions and `Hostname`. `metrics_mode` may leave out all but `tsctl_…`.

{table(("name", "type", "labels", ""), rows)}"""
