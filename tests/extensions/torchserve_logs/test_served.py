"""TorchServe's log files are what scripts that read them expect: names, places, lines, and modes."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.served import Served, eventually
from tests.e2e.test_configuration import all_ready, configure, settings

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}"


def measure(served: Served, count: int) -> str:
    """Ask for one prediction; return the request's id."""
    answer = served.ask("/predictions/measures", json.dumps({"count": count}).encode(), content_type="application/json")
    assert answer.status == 200
    return answer.headers["x-request-id"]


def has(path: Path, pattern: str) -> bool:
    return re.search(pattern, path.read_text(), re.MULTILINE) is not None


TIMES = r"#hostname:[^,]+,timestamp:\d+$"
# file → a line of it, behind the stamp; NAME is the request's id
LINES = [
    ("logs/access_log.log", r'- /127\.0\.0\.1:\d+ "POST /predictions/measures HTTP/1\.1" 200 \d+$'),
    ("logs/ts_log.log", r"\[INFO \] main tsctl\.daemon\.events - measures/1\.0: registered from measures\.mar$"),
    ("logs/model_log.log", r"\[INFO \] W-9000-prints_1\.0-stdout MODEL_LOG - 0$"),
    ("logs/ts_log.log", r"\[INFO \] W-9000-prints_1\.0-stdout MODEL_LOG - 0$"),
    ("metrics/ts_metrics.log", r"- ts_inference_requests_total\.Count:1\.0\|#model_name:measures,model_version:"),
    ("metrics/ts_metrics.log", r"- WorkerLoadTime\.Milliseconds:[\d.]+\|#WorkerName:W-9000-measures_1\.0,Level:Host\|"),
    ("metrics/ts_metrics.log", rf"- CPUUtilization\.Percent:[\d.]+\|#Level:Host\|{TIMES}"),
    ("metrics/model_metrics.log", r"- Words\.Count:3\.0\|#Language:de,.*,requestID:NAME,timestamp:\d+$"),
    ("metrics/model_metrics.log", r"- PredictionTime\.ms:[\d.]+\|#ModelName:measures,Level:Model\|.*requestID:NAME,"),
]  # fmt: skip


@pytest.mark.thin
def test_the_five_files_have_torchserves_lines(idle: Served, tmp_path: Path) -> None:
    idle.environment |= {"LOG_LOCATION": str(tmp_path / "logs"), "METRICS_LOCATION": str(tmp_path / "metrics")}
    idle.start()
    present = {f"{path.parent.name}/{path.name}" for path in tmp_path.glob("*/*.log")}
    idle.register("measures")
    idle.register("prints")

    name = measure(idle, 3)
    idle.ask("/predictions/prints", b"lines 1")

    assert present == {name for name, _ in LINES}
    for file, line in LINES:
        pattern = rf"^{STAMP} {line.replace('NAME', name)}"
        eventually(partial(has, tmp_path / file, pattern), f"{file} has {pattern}")
    assert not has(tmp_path / "logs/model_log.log", r"\[METRICS\]")


def test_an_upgrade_goes_on_with_the_same_files(idle: Served, tmp_path: Path) -> None:
    idle.environment |= {"LOG_LOCATION": str(tmp_path / "logs")}
    idle.start()
    idle.register("measures")

    idle.tsctl("upgrade")
    measure(idle, 2)

    line = r'"POST /predictions/measures HTTP/1\.1" 200 \d+$'
    eventually(lambda: has(tmp_path / "logs" / "access_log.log", line), "the new daemon writes there")


def test_snapshots_are_written_where_torchserve_writes_them_and_a_daemon_starts_from_one(idle: Served) -> None:
    logs = idle.folder / "logs"
    idle.environment["LOG_LOCATION"] = str(logs)
    file = configure(idle, "default_response_timeout=77")
    idle.start("--ts-config", file)
    idle.register("echo", "--workers", "2", "--batch-size", "4")
    idle.stop()

    kinds = [each.name.partition("-")[2] for each in sorted((logs / "config").iterdir())]
    assert kinds == ["startup.cfg", "snapshot.cfg", "shutdown.cfg"]

    idle.environment["TSCTL_STATE_DIR"] = str(idle.folder / "another")
    snapshot = next((logs / "config").glob("*-shutdown.cfg"))
    idle.start("--ts-config", str(snapshot), "--ncs")
    eventually(lambda: all_ready(idle, 1), "the snapshot's model is loaded")
    described = idle.describe("echo")
    assert (described["minWorkers"], described["batchSize"], described["responseTimeout"]) == (2, 4, 77)
    assert settings(idle)["response_timeout"] == (77.0, f"file {snapshot}")
    idle.stop()
    assert len(list((logs / "config").iterdir())) == 3, "without a restore none is written"
