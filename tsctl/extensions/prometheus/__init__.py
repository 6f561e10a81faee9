"""`/metrics` at the command line: `tsctl metrics`.

rules.yml       alerts for Prometheus
dashboard.json  a board for Grafana
"""

from collections.abc import Mapping

from tsctl.extension import CommandLine


class PrometheusCommandLine(CommandLine):
    verbs: Mapping[str, tuple[str, str]] = {
        "metrics": ("Daemon", "Print the metrics, rules of alerts, or a Grafana board.")
    }
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {
        "metrics": (
            ("Print the metrics", "tsctl metrics"),
            ("Write the rules of alerts for Prometheus", "tsctl metrics --rules > tsctl-rules.yml"),
        )
    }


COMMAND_LINE = PrometheusCommandLine()
