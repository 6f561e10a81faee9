"""A real Prometheus that scrapes one daemon and evaluates our rules, with each minute of a rule run in two seconds."""

import json
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.served import free_address

SECONDS_A_MINUTE = 2
_MINUTES = re.compile(r"(\[| )(\d+)m(\]|$)", re.MULTILINE)


def quickened(rules: str) -> str:
    """Return the rules with their durations, which are whole minutes, cut to seconds."""
    return _MINUTES.sub(lambda found: f"{found[1]}{int(found[2]) * SECONDS_A_MINUTE}s{found[3]}", rules)


class Prometheus:
    """The server, from its start to `stop`.

    Args:
        program: the path of the program.
        target: HOST:PORT whose `/metrics` is scraped twice a second.
    """

    def __init__(self, program: str, folder: Path, rules: str, target: str) -> None:
        folder.mkdir()
        (folder / "rules.yml").write_text(rules)
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "tsctl", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        self._address = free_address()
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [program, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                 f"--web.listen-address={self._address}"],
                cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts that fire now, each with its model, which is empty for those of the daemon."""
        try:
            with urllib.request.urlopen(f"http://{self._address}/api/v1/alerts", timeout=5.0) as answer:
                alerts: list[dict[str, Any]] = json.load(answer)["data"]["alerts"]
        except OSError:  # it has not begun to listen
            return set()
        return {
            (each["labels"]["alertname"], each["labels"].get("model", ""))
            for each in alerts
            if each["state"] == "firing"
        }
