"""`tsctl tune`, with a process that only says that it serves, and a load generator that only tells figures."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.told import Told, told_in
from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.transcripts import play
from tsctl.errors import CliError
from tsctl.render import live
from tsctl.tuning import saved_results
from tsctl.tuning.measuring import _serving

WORKER = {
    "modelName": "net", "modelVersion": "1.0", "directory": "/nowhere", "handler": "base_handler", "workers": 1,
    "settings": {
        "batchSize": 1, "maxBatchDelay": 100.0, "batching": "auto", "responseTimeout": 60, "jobQueueSize": 100,
    },
    "batching": {"mode": "batch", "learned": {"batchMs": None}, "arrivalsPerSecond": 0.0}, "anyWorker": True,
}  # fmt: skip
CONFIG = [
    {"name": "envelope", "value": "json", "origin": "flag"},
    {"name": "decode_input", "value": False, "origin": "default"},
    {"name": "limit_image_pixels", "value": False, "origin": "environment"},
    {"name": "hide_environment", "value": None, "origin": "default"},
    {"name": "metrics_config", "value": None, "origin": "default"},
]
# Keeps each line that it reads in a file, by which the load generator knows the setting.
SERVE = """
import json, sys
log, refused = open(sys.argv[1], "w", buffering=1), sys.argv[2]
for number, line in enumerate(sys.stdin):
    log.write(line)
    setting = json.loads(line)
    if not number:
        answer = {"stage": "started", "port": 1234, "cores": 2}
    elif setting is None:
        answer = {"stage": "used", "cpu": number / 10}
    elif str(setting["batchSize"]) in refused.split(","):
        answer = {"stage": "failed", "message": "Failed to start workers: no weights\\n\\nTraceback …"}
    else:
        answer = {"stage": "serving", "threads": 2 // setting["minWorkers"]}
    print(json.dumps(answer), flush=True)
"""
FASTER = {1: 100.0, 8: 400.0, 32: 410.0}  # requests a second by batch size


class FakeLoad:
    """Told figures, by batch size; `orders` are those of the load generator.

    Args:
        lines: the file with what the serving process has read.
    """

    def __init__(self, lines: Path) -> None:
        self._lines = lines
        self.rates = dict(FASTER)
        self.errors: set[int] = set()
        self.refusal = ("507", "out of memory")
        self.waited = 0.0
        self.seconds = 0.5
        self.orders: list[dict[str, Any]] = []
        self.body = b""
        self.broken_off = 0

    def break_off(self) -> None:
        self.broken_off += 1

    @contextmanager
    def generator(self, order: dict[str, Any], body: bytes) -> Iterator["FakeLoad"]:
        self.orders.append(order)
        self.body = body
        yield self

    def events(self) -> Iterator[dict[str, Any]]:
        size = settings_in(self._lines)[-1]["batchSize"]
        failed = size in self.errors
        yield {"stage": "running", "errors": int(failed)}
        yield {
            "stage": "done", "requests": 50, "errors": 5 * failed, "requestsPerSecond": self.rates[size],
            "wholeSeconds": 50 / self.rates[size],
            "statuses": {"200": 45, self.refusal[0]: 3} if failed else {"200": 50},
            "reasons": dict([self.refusal]) if failed else {}, "failures": {"timeout": 2} if failed else {},
            "latency": {"p50": 0.02, "p99": 0.03 if size == 1 else 0.04},
            "seconds": self.seconds, "generatorCpu": 0.2, "generatorWaited": self.waited,
        }  # fmt: skip


def settings_in(lines: Path) -> list[dict[str, Any]]:
    """Return the settings that the serving process has read, in order."""
    return [each for each in map(json.loads, lines.read_text().splitlines()[1:]) if each is not None]


@pytest.fixture
def lines(tmp_path: Path, daemon: FakeDaemon) -> Path:
    """A daemon that serves the model `net`; return the file with what the serving process has read."""
    daemon.answer("GET /tsctl/worker/net", WORKER)
    state = {"name": "state_dir", "value": str(tmp_path / "kept"), "origin": "flag"}
    daemon.answer("GET /tsctl/config", [*CONFIG, state])
    daemon.answer_body("GET /tsctl/input/net", b"recorded", "text/plain")
    daemon.answer("PATCH /models/net", {"changes": []})
    daemon.answer("PUT /models/net", {"status": "ok"})
    return tmp_path / "lines"


@pytest.fixture
def load(lines: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLoad:
    refuse(monkeypatch, lines, "")
    found = FakeLoad(lines)
    monkeypatch.setattr("tsctl.tuning.measuring.generator", found.generator)
    return found


def refuse(monkeypatch: pytest.MonkeyPatch, lines: Path, sizes: str) -> None:
    """Let the model not load with these batch sizes."""
    monkeypatch.setattr("tsctl.tuning.measuring.SERVE", (sys.executable, "-c", SERVE, str(lines), sizes))


@told_in([Path(__file__).with_name("tune.txt")])
def test_the_command_asks_and_says_all_of_this(
    told: Told, invoke: Invoke, load: FakeLoad, lines: Path, daemon: FakeDaemon, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As in tests/tsctl/transcripts; the first line has what is told of the load, and the sizes that do not load."""
    first, *rest = told.lines
    given = json.loads(first[2:])
    load.rates = {int(size): rate for size, rate in given.get("rates", FASTER).items()}
    load.refusal = given.get("refusal", load.refusal)
    load.errors, load.waited = set(given.get("errors", ())), given.get("waited", 0.0)
    refuse(monkeypatch, lines, given.get("refuse", ""))

    made = play(rest, daemon, tmp_path, invoke)
    sizes = [each["batchSize"] for each in settings_in(lines)] if lines.exists() else []
    loads = sorted({(order["connections"], order["rate"] or 0.0) for order in load.orders})
    made.append(f"% batch sizes {sizes}, connections and rates {loads}, broken off {load.broken_off} times")
    told.compare([first, *made])


def test_the_process_that_serves_is_told_the_model_and_then_each_setting_there_and_back(
    invoke: Invoke, load: FakeLoad, lines: Path
) -> None:
    invoke("tune", "net", "--workers", "1", "--max-batch-size", "8")

    order, *others = map(json.loads, lines.read_text().splitlines())
    assert order == {
        "model": WORKER, "settings": {"envelope": "json", "limit_image_pixels": "false"}, "bodyBytes": len(b"recorded"),
    }  # fmt: skip
    settings = settings_in(lines)
    assert [each["batchSize"] for each in settings] == [1, 8, 8, 1, 1, 8]
    assert settings[0] == {
        "batchSize": 1, "maxBatchDelay": 100.0, "batching": "auto", "minWorkers": 1, "maxWorkers": 1,
    }  # fmt: skip
    assert others.count(None) == 2 * len(settings), "before and after each measurement"


def test_the_load_is_that_of_clients_after_a_warm_up(invoke: Invoke, load: FakeLoad) -> None:
    invoke("tune", "net", "--clients", "4", "--seconds", "3", "--workers", "1")

    warm, order = load.orders[:2]
    assert (warm["seconds"], order["seconds"]) == (1.5, 3.0)
    assert order == {
        "target": "/predictions/net", "headers": [["Content-Type", "text/plain"]], "host": "127.0.0.1", "port": 1234,
        "connections": 4, "rate": None, "seconds": 3.0, "timeout": 120.0,
    }  # fmt: skip
    assert load.body == b"recorded"


def test_a_slow_model_is_measured_for_some_answers_of_each_client(
    invoke: Invoke, load: FakeLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsctl.tuning.measuring.CLOSED_LOOP", (200, 20.0))
    load.seconds = 12.1

    done = invoke("tune", "net", "--workers", "1")

    assert [order["seconds"] for order in load.orders[:2]] == [1.0, 4.0]
    assert "3 rounds of 12 s a setting" in done.stdout, "as long as it was, not as asked"


def test_a_file_may_be_the_input(invoke: Invoke, load: FakeLoad, tmp_path: Path) -> None:
    (tmp_path / "input.json").write_text("{}")

    invoke("tune", "net", tmp_path / "input.json", "--workers", "1")

    assert (load.orders[0]["headers"], load.body) == ([["Content-Type", "application/json"]], b"{}")


def test_the_result_is_kept_for_the_page_and_for_its_owner_alone(
    invoke: Invoke, load: FakeLoad, tmp_path: Path
) -> None:
    document = json.loads(invoke("tune", "net", "--json", "--workers", "1").stdout)
    (file,) = (tmp_path / "kept" / "tuned").iterdir()

    assert (file.name, file.stat().st_mode & 0o777) == ("net@1.0.json", 0o600)
    (kept,) = saved_results.saved(tmp_path / "kept")
    assert abs(kept.pop("time") - time.time()) < 60
    assert kept == document
    invoke("tune", "net", "--workers", "1")
    assert list((tmp_path / "kept" / "tuned").iterdir()) == [file]


def test_a_result_that_cannot_be_kept_is_still_shown(invoke: Invoke, load: FakeLoad, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")

    done = invoke("tune", "net", "--workers", "1")

    assert done.exit_code == 0
    assert "Serve it with batch size 8" in done.stdout
    assert "note: this result could not be kept for later: " in done.stderr


def test_files_that_are_no_results_are_left_out(tmp_path: Path) -> None:
    directory = saved_results.save(tmp_path, {"model": "a", "version": "1", "time": 5.0}).parent
    saved_results.save(tmp_path, {"model": "b", "version": "1", "time": 6.0})
    for name, text in {"c@1.json": "{", "d@1.json": "[]", "e@1.json": "{}", ".x@1.json": '{"time": 1}'}.items():
        (directory / name).write_text(text)
    (directory / "f@1.json").write_text(" " * saved_results.LARGEST + "{}")
    (directory / "g@1.json").mkdir()

    assert [each["model"] for each in saved_results.saved(tmp_path)] == ["b", "a"]
    assert saved_results.saved(tmp_path / "nothing") == []


def test_a_process_that_ends_early_is_an_error(invoke: Invoke, load: FakeLoad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tsctl.tuning.measuring.SERVE", (sys.executable, "-c", "raise SystemExit(9)"))

    done = invoke("tune", "net")

    assert "error: the process that serves the model ended with exit code 9" in done.stderr


def test_a_process_that_ends_before_it_has_read_an_order_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os; os.close(0); print('{}', flush=True); os._exit(9)"
    monkeypatch.setattr("tsctl.tuning.measuring.SERVE", (sys.executable, "-c", program))

    def order_twice() -> None:
        with live() as progress, _serving(progress) as ask:
            assert ask("first") == {}  # after which nobody reads
            ask("second")

    with pytest.raises(CliError, match="ended with exit code 9"):
        order_twice()
