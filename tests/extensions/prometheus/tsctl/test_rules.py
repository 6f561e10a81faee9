"""Each rule fires when its trouble is there, and none does without; by promtool, which is Prometheus' own."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.house import House
from tests.api.test_endings import HARMLESS
from tests.metrics.reading import types
from tsctl.daemon.extensions.prometheus.families import NONE_REFUSED

RULES = (files("tsctl.extensions.prometheus") / "rules.yml").read_text(encoding="utf-8")
BOARD = json.loads((files("tsctl.extensions.prometheus") / "dashboard.json").read_text(encoding="utf-8"))
M = 'model="m",version="1.0"'
HOST = 'instance="i"'
MINUTES = 30
# A healthy version: a sample each minute.
HEALTHY = {
    f"tsctl_workers_ready{{{M}}}": "2x30",
    f"tsctl_workers_wanted{{{M}}}": "2x30",
    f'tsctl_requests_judged_total{{verdict="good",{M}}}': "0+600x30",
    f'tsctl_requests_judged_total{{verdict="bad",{M}}}': "0+1x30",
    f'tsctl_requests_refused_total{{reason="queue_full",{M}}}': "0x30",
    f'tsctl_requests_expired_total{{limit="operator",where="queue",{M}}}': "0x30",
    f'tsctl_worker_exits_total{{how="stopped",{M}}}': "0+1x30",
    f'tsctl_worker_exits_total{{how="signal",{M}}}': "0x30",
    f"tsctl_model_crashing{{{M}}}": "0x30",
    f'tsctl_events_total{{kind="log-lost",level="error",{HOST}}}': "0x30",
    f'tsctl_events_total{{kind="worker-exited",level="warning",{HOST}}}': "0+1x30",
    f"tsctl_event_loop_stall_seconds_total{{{HOST}}}": "0+0.6x30",
    f'tsctl_server_ends_total{{server="gRPC",{HOST}}}': "0x30",
    f"tsctl_internal_errors_total{{{HOST}}}": "0x30",
    f"tsctl_queue_oldest_seconds{{{M}}}": "0.1x30",
    f"tsctl_inference_time_seconds_sum{{{M}}}": "0+30x30",
    f'tsctl_request_latency_seconds_bucket{{le="0.1",outcome="ok",{M}}}': "0+600x30",
    f'tsctl_request_latency_seconds_bucket{{le="2.5",outcome="ok",{M}}}': "0+600x30",
    f'tsctl_request_latency_seconds_bucket{{le="+Inf",outcome="ok",{M}}}': "0+600x30",
}
# alert → the series that are otherwise, from the tenth minute on
TROUBLES: dict[str, dict[str, str]] = {
    "TsctlModelDown": {f"tsctl_workers_ready{{{M}}}": "2x9 0x20"},
    "TsctlRequestsFail": {f'tsctl_requests_judged_total{{verdict="bad",{M}}}': "0x9 0+30x20"},
    "TsctlSlow": {f'tsctl_request_latency_seconds_bucket{{le="0.1",outcome="ok",{M}}}': "0+300x30"},
    "TsctlQueueOld": {f"tsctl_queue_oldest_seconds{{{M}}}": "0.1x9 8x20"},
    "TsctlRequestsExpire": {f'tsctl_requests_expired_total{{limit="operator",where="queue",{M}}}': "0x9 0+5x20"},
    "TsctlRequestsRefused": {f'tsctl_requests_refused_total{{reason="queue_full",{M}}}': "0x27 784x3"},
    "TsctlWorkersBusy": {f"tsctl_inference_time_seconds_sum{{{M}}}": "0+118x30"},
    "TsctlWorkersDie": {f'tsctl_worker_exits_total{{how="signal",{M}}}': "0x27 1x3"},
    "TsctlModelCrashing": {f"tsctl_model_crashing{{{M}}}": "0x9 1x20"},
    "TsctlWorkersMissing": {f"tsctl_workers_ready{{{M}}}": "2x9 1x20"},
    "TsctlDiskFull": {f'tsctl_events_total{{kind="log-lost",level="error",{HOST}}}': "0x27 1x3"},
    "TsctlLoopStalls": {f"tsctl_event_loop_stall_seconds_total{{{HOST}}}": "0x9 0+6x20"},
    "TsctlServerEnds": {f'tsctl_server_ends_total{{server="gRPC",{HOST}}}': "0x27 1x3"},
    "TsctlInternalErrors": {f"tsctl_internal_errors_total{{{HOST}}}": "0x27 1x3"},
}
# What clients may choose: deadlines too short, invalid requests, and to read slowly.
CHOSEN_BY_CLIENTS = {
    f'tsctl_requests_total{{code="504",{M}}}': "0+600x30",
    f'tsctl_requests_total{{code="400",{M}}}': "0+600x30",
    f'tsctl_requests_expired_total{{limit="client",where="queue",{M}}}': "0+600x30",
    f'tsctl_requests_expired_total{{limit="client",where="worker",{M}}}': "0+600x30",
    f'tsctl_requests_refused_total{{reason="invalid",{M}}}': "0+600x30",
    f'tsctl_requests_refused_total{{reason="client_rate",{M}}}': "0+600x30",
    f'tsctl_request_latency_seconds_bucket{{le="0.1",outcome="client",{M}}}': "0x30",
    f'tsctl_request_latency_seconds_bucket{{le="+Inf",outcome="client",{M}}}': "0+600x30",
}

OF_THE_DAEMON = ("TsctlDiskFull", "TsctlLoopStalls", "TsctlServerEnds", "TsctlInternalErrors")

Firing = Callable[[dict[str, str], str, list[dict[str, Any]]], subprocess.CompletedProcess[str]]


@pytest.fixture
def firing(tmp_path: Path) -> Firing:
    """Return a run of the rules over some series, which compares the result of an expression at the end."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool, of the Debian package prometheus")

    def check(
        series: dict[str, str], expression: str, expected: list[dict[str, Any]]
    ) -> subprocess.CompletedProcess[str]:
        (tmp_path / "rules.yml").write_text(RULES)
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [{"expr": expression, "eval_time": f"{MINUTES - 1}m", "exp_samples": expected}],
        }
        cases = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [test]}
        (tmp_path / "cases.yml").write_text(yaml.safe_dump(cases))
        command = [program, "test", "rules", "cases.yml"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return check


def test_every_rule_has_a_trouble() -> None:
    groups = yaml.safe_load(RULES)["groups"]

    assert [rule["alert"] for group in groups for rule in group["rules"]] == list(TROUBLES)


def test_every_refusal_alarms_but_those_that_the_operator_or_a_client_chose() -> None:
    named = re.search(r'reason=~"([^"]+)"', RULES)
    assert named is not None
    alarming = {*named[1].split("|")}

    assert NONE_REFUSED.keys() - HARMLESS <= alarming
    assert not alarming & HARMLESS


@pytest.mark.slow
@pytest.mark.parametrize("alert", TROUBLES)
def test_a_trouble_fires_its_alert(firing: Firing, alert: str) -> None:
    labels = HOST if alert in OF_THE_DAEMON else M
    expression = f'count(ALERTS{{alertname="{alert}",alertstate="firing",{labels}}})'

    done = firing(HEALTHY | TROUBLES[alert], expression, [{"labels": "{}", "value": 1}])

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_healthy_version_fires_nothing(firing: Firing) -> None:
    done = firing(HEALTHY, "count(ALERTS)", [])

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_no_client_fires_an_alert(firing: Firing) -> None:
    done = firing(HEALTHY | CHOSEN_BY_CLIENTS, "count(ALERTS)", [])

    assert done.returncode == 0, done.stdout + done.stderr


async def test_rules_and_board_ask_only_for_metrics_that_there_are(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.serve("m")
    await house.ask("POST", "/predictions/m", b"a")
    house.registry.find("m").metrics.expirations["queue"] += 1
    house.metrics.servers["gRPC"] = True, 0
    text = (await house.ask("GET", "/metrics")).body.decode()
    expressions = [rule["expr"] for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]
    expressions += [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]

    asked = {name for expression in expressions for name in re.findall(r"tsctl_\w+", expression)}

    samples = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    assert asked <= samples
    assert types(text)["tsctl_requests_total"] == "counter"


def test_panels_of_the_board_do_not_overlap() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in BOARD["panels"]]

    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(places)
