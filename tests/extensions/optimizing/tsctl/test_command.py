"""`tsctl optimize`, with a process that only says what the measuring would."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.apply.file import parse

SETTINGS = {"batchSize": 8, "startupTimeout": 60, "responseTimeout": 60, "optimize": ["compile"]}
WORKER: dict[str, Any] = {
    "modelName": "net", "modelVersion": "1.0", "workers": 1, "settings": SETTINGS, "batching": {"mode": "batch"},
    "directory": "/nowhere", "handler": "image_classifier", "manifest": {}, "python": None, "devices": [],
}  # fmt: skip
CONFIG = [
    {"name": "envelope", "value": "json", "origin": "flag"},
    {"name": "decode_input", "value": False, "origin": "default"},
]
REGISTERED = {
    "name": "net", "version": "1.0", "default": True, "url": "net.mar", "handler": None, "sha256": "a" * 64,
    "settings": {"batchSize": 8}, "fallbackBatchSize": 0, "workers": {"min": 1, "max": 1}, "state": "ready",
    "ephemeral": False, "rewritten": False,
}  # fmt: skip
REPLACED = {
    "status": 'Model "net" Version: 1.0 replaced', "modelName": "net", "modelVersion": "1.0", "batchSize": 8,
    "maxBatchDelay": 100.0, "batching": "auto", "replaced": True, "kept": ["batchSize"],
    "changed": [{"setting": "optimize", "before": ["compile"], "after": ["int8"]}],
}  # fmt: skip


def row(name: str, seconds: float | None, **facts: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "optimize": name, "now": False, "seconds": seconds, "perSecond": None if seconds is None else 8 / seconds,
        "drift": None, "agreement": None, "memory": 640 << 20, "load": 2.125, "outcomes": [], "refused": "",
        "missing": "", "gain": None if seconds is None else 0.1 / seconds, "sure": True,
    }  # fmt: skip
    return values | facts


ROWS = [
    row("none", 0.2),
    row("default", 0.16, drift=3.9e-3),
    row("bf16", None, memory=0, load=0.0, refused="it needs AVX512_BF16"),
    row("int8", 0.05, drift=0.031, agreement=0.985),
    row("compile", 0.1, drift=2e-7, now=True),
]
DONE = {
    "stage": "done", "batchSize": 8, "threads": 2, "rows": ROWS, "recommended": "int8",
}  # fmt: skip
WORKING = {"stage": "loading", "optimize": "none", "done": 0, "total": 6}
# Keeps what it was asked in a file, and says what it is told to.
FAKE = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read()); print(sys.argv[2])"


@pytest.fixture
def order(tmp_path: Path, daemon: FakeDaemon) -> Path:
    """A daemon that serves the model `net`; give the file with what the measuring was asked."""
    daemon.answer("GET /tsctl/worker/net", WORKER)
    daemon.answer("GET /tsctl/config", CONFIG)
    daemon.answer_body("GET /tsctl/input/net", b"recorded", "image/jpeg")
    daemon.answer("GET /tsctl/status", {"modelStore": "/store"})
    daemon.answer("GET /tsctl/registrations", {"versions": [REGISTERED], "earlier": {}})
    daemon.answer("POST /models", REPLACED)
    return tmp_path / "order"


@pytest.fixture
def measuring(order: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace the measuring process by one that prints given events."""

    def say(*events: dict[str, Any]) -> None:
        lines = "\n".join(json.dumps(event) for event in events)
        monkeypatch.setattr(
            "tsctl.extensions.optimizing.measuring.OPTIMIZE", (sys.executable, "-c", FAKE, str(order), lines)
        )

    say(WORKING, DONE)
    return say


def lines_of(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


def changes(daemon: FakeDaemon) -> list[dict[str, str]]:
    return [request.query for request in daemon.requests if request.method != "GET"]


def test_each_set_has_a_row_and_the_fastest_comes_with_its_command(invoke: Invoke, measuring: Any) -> None:
    done = invoke("optimize", "net")

    assert done.exit_code == 0, done.output
    assert lines_of(done.stdout) == [
        "OPTIMIZE BATCH OF 8 REQ/S GAIN DRIFT AGREE MEMORY LOAD",
        "none 200 ms 40.0 1.00x - - 640.0 MiB 2.1 s",
        "default 160 ms 50.0 1.25x 3.9e-03 - 640.0 MiB 2.1 s",
        "bf16 refused - - - - - -",
        "int8 50.0 ms 160 4.00x 3.1e-02 98.5% 640.0 MiB 2.1 s",
        "compile (now) 100 ms 80.0 2.00x 2.0e-07 - 640.0 MiB 2.1 s",
        "bf16: refused: it needs AVX512_BF16",
        "fastest within the tolerances: int8; apply with:",
        "tsctl optimize net --apply int8",
    ]
    assert done.stderr == ""


def test_where_nothing_is_faster_that_is_the_verdict(invoke: Invoke, measuring: Any, daemon: FakeDaemon) -> None:
    measuring(WORKING, DONE | {"recommended": None})

    done = invoke("optimize", "net", "--apply")

    assert done.stdout.splitlines()[-1] == "nothing is faster than what is registered"
    assert changes(daemon) == []


def test_what_was_left_out_of_a_set_is_told(invoke: Invoke, measuring: Any) -> None:
    rows = [*ROWS[:3], row("int8", 0.2, missing="int8 was left out: no such layer")]
    measuring(WORKING, DONE | {"rows": rows, "recommended": None})

    assert "int8: int8 was left out: no such layer" in invoke("optimize", "net").stdout


def test_a_set_that_other_programs_have_disturbed_is_noted(invoke: Invoke, measuring: Any) -> None:
    measuring(WORKING, DONE | {"rows": [*ROWS[:3], row("int8", 0.05, sure=False)], "recommended": None})

    assert "int8: unsure: other programs disturbed the measurement" in invoke("optimize", "net").stdout


def test_where_the_plain_model_is_refused_nothing_is_compared_with_it(invoke: Invoke, measuring: Any) -> None:
    measuring(WORKING, DONE | {"rows": [row("none", None, refused="it is too large"), *ROWS[1:]]})

    assert "int8 50.0 ms 160 - 3.1e-02 98.5% 640.0 MiB 2.1 s" in lines_of(invoke("optimize", "net").stdout)


def test_the_measuring_is_told_all_it_needs(invoke: Invoke, measuring: Any, order: Path) -> None:
    invoke("optimize", "net", "--seconds", "0.5")

    line, _, body = order.read_bytes().partition(b"\n")
    told = json.loads(line)
    assert (told["settings"], told["contentType"], told["seconds"]) == ({"envelope": "json"}, "image/jpeg", 0.5)
    assert told["model"]["settings"] == SETTINGS
    assert body == b"recorded"


def test_without_any_input_the_error_names_the_option(invoke: Invoke, measuring: Any, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/input/net", {"message": "No sample input for net/1.0."}, status=404)

    done = invoke("optimize", "net")

    assert done.exit_code == 1
    assert "error: No sample input for net/1.0." in done.stderr
    assert "hint: name a FILE with a request after the model" in done.stderr


def test_a_model_without_batches_is_refused(invoke: Invoke, measuring: Any, daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/worker/net", WORKER | {"batching": {"mode": "continuous"}})

    done = invoke("optimize", "net")

    assert done.exit_code == 1
    assert "net runs its requests on their own (`continuous`): there are no batches to measure" in done.stderr


def test_a_handler_without_a_model_says_so(invoke: Invoke, measuring: Any) -> None:
    message = "there is nothing to optimise: the handler is not a subclass of BaseHandler"
    measuring(WORKING, {"stage": "failed", "message": message, "details": ""})

    done = invoke("optimize", "net")

    assert (done.exit_code, done.stdout) == (1, "")
    assert f"error: net: {message}" in done.stderr


def test_json_is_all_that_was_found(invoke: Invoke, measuring: Any) -> None:
    found = json.loads(invoke("optimize", "net", "--json").stdout)

    assert (found["model"], found["version"], found["rows"]) == ("net", "1.0", ROWS)
    assert found["command"] == "tsctl optimize net --apply int8"


def test_applying_the_best_registers_the_archive_again_with_that_set(
    invoke: Invoke, measuring: Any, daemon: FakeDaemon
) -> None:
    done = invoke("optimize", "net", "--apply")

    (asked,) = changes(daemon)
    assert asked == {
        "url": "/store/net.mar", "model_name": "net", "model_version": "1.0", "sha256": "a" * 64, "replace": "true",
        "synchronous": "true", "optimize": "int8", "warnings": "true",
    }  # fmt: skip
    assert done.stdout.splitlines()[-1] == REPLACED["status"]
    assert "Changed: optimizations compile → int8" in done.stderr
    assert "Kept: batch size" in done.stderr


@pytest.mark.parametrize(
    ("value", "asked"), [("bf16,compile", "bf16,compile"), ("none", "none"), ("default", ",")]
)  # fmt: skip
def test_a_named_set_is_applied_without_measuring(
    invoke: Invoke, measuring: Any, daemon: FakeDaemon, order: Path, value: str, asked: str
) -> None:
    done = invoke("optimize", "net", "--apply", value)

    assert done.exit_code == 0, done.output
    assert [query["optimize"] for query in changes(daemon)] == [asked]
    assert not order.exists()


def test_an_unknown_set_is_wrong_usage(invoke: Invoke, measuring: Any, daemon: FakeDaemon) -> None:
    done = invoke("optimize", "net", "--apply", "int9")

    assert done.exit_code == 2
    assert "`int9`; expected `auto`, or a list of none, fast_images, " in " ".join(done.stderr.split())
    assert daemon.requests == []


def test_a_model_that_a_program_serves_is_left_to_that_program(
    invoke: Invoke, measuring: Any, daemon: FakeDaemon
) -> None:
    daemon.answer("GET /tsctl/registrations", {"versions": [REGISTERED | {"ephemeral": True}], "earlier": {}})

    done = invoke("optimize", "net", "--apply", "bf16")

    assert done.exit_code == 1
    assert "`net` is served by a program, such as `tsctl serve`" in done.stderr
    assert changes(daemon) == []


def test_what_was_applied_is_part_of_the_json(invoke: Invoke, measuring: Any) -> None:
    assert json.loads(invoke("optimize", "net", "--apply", "--json").stdout)["applied"] == REPLACED
    assert json.loads(invoke("optimize", "net", "--apply", "int8", "--json").stdout) == REPLACED


def test_a_registration_passes_the_names_on_and_shows_what_changed(invoke: Invoke, daemon: FakeDaemon) -> None:
    daemon.answer("POST /models", REPLACED | {"changed": [{"setting": "optimize", "before": None, "after": ["bf16"]}]})

    done = invoke("register", "net.mar", "--optimize", "bf16,compile", "--replace")

    assert daemon.requests[0].query["optimize"] == "bf16,compile"
    assert "Changed: optimizations default → bf16" in done.stderr


def test_a_file_of_models_may_name_them(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text("def handle(data, context):\n    return data\n")
    text = 'models:\n  net:\n    source: handler.py\n    settings: {optimize: "fold,bf16"}\n'

    (spec,) = parse(text, "f.yaml", tmp_path, None)["net"].versions.values()

    assert spec.settings["optimize"] == ["fold", "bf16"]
