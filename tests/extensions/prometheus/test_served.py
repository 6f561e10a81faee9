"""A running daemon's metrics, and the request id along a request's way."""

import shutil
import subprocess
import urllib.request

import pytest

from tests.e2e.served import Served, eventually
from tests.metrics.reading import values

OF = "ModelName=measures,ModelVersion=1.0"


@pytest.fixture(scope="session")
def measuring(shared: Served) -> Served:
    shared.register("measures", "--batch-size", "1")
    return shared


@pytest.mark.thin
def test_what_handlers_emit_appears_without_being_declared_anywhere(measuring: Served) -> None:
    before = values(measuring.metrics)
    for count in (2, 30):
        assert measuring.predict("measures", {"count": count}).status == 200

    lines = values(measuring.metrics)
    grown = {line: value - before.get(line, 0) for line, value in lines.items()}
    assert grown[f"Words{{Language=de,Level=Model,{OF}}}"] == 32
    assert lines[f"Heat{{{OF},Where=here}}"] == 30
    assert lines[f"WeightsSize{{Level=Model,{OF}}}"] == 12
    assert grown[f"WordLength_bucket{{Level=Model,{OF},le=2.5}}"] == 1
    assert grown[f"WordLength_count{{Level=Model,{OF}}}"] == 2
    assert (
        0
        < lines["HandlerTime{Level=Model,ModelName=measures}"]
        <= lines["PredictionTime{Level=Model,ModelName=measures}"]
    )


def test_it_can_be_switched_off(idle: Served) -> None:
    idle.start("--no-metrics")

    assert idle.ask("/metrics", method="GET").status == 404
    assert idle.status["metricsAddress"] is None


@pytest.mark.thin
def test_promtool_reads_what_a_daemon_tells(measuring: Served) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool, of the Debian package prometheus")
    measuring.predict("measures", {"count": 3})

    done = subprocess.run([promtool, "check", "metrics"], input=measuring.metrics.encode(), capture_output=True)

    assert done.returncode in (0, 3), done.stderr  # 1: it cannot be read; 3: a name is not in Prometheus' style
    assert b"tsctl_" not in done.stderr


def test_an_address_of_their_own_shows_the_same_the_ends_of_workers_among_them(idle: Served) -> None:
    idle.start("--metrics-address", "127.0.0.1:0")
    idle.register("misbehaves")
    assert idle.predict("misbehaves", {"do": "die_of_a_real_time_signal"}).status == 500

    with urllib.request.urlopen(f"{idle.status['metricsAddress']}/metrics") as answer:
        lines = values(answer.read().decode())

    assert lines["tsctl_worker_exits_total{how=signal,model=misbehaves,version=1.0}"] == 1
    assert "tsctl_worker_exits_total{how=signal,model=misbehaves,version=1.0}" in values(idle.metrics)


def test_the_end_of_a_worker_by_a_broken_gpu_context_is_counted_as_such(idle: Served) -> None:
    idle.start()
    idle.register("plays_gpu", name="m")
    assert idle.ask("/predictions/m", b"break", content_type="application/octet-stream").status == 500

    assert values(idle.metrics)["tsctl_worker_exits_total{how=gpu,model=m,version=1.0}"] == 1


def test_counters_survive_an_upgrade_with_what_the_old_daemon_still_answers(idle: Served) -> None:
    idle.start()
    idle.register("measures", "--batch-size", "1")
    line, codes = f"Words{{Language=de,Level=Model,{OF}}}", "tsctl_requests_total{code=200,model=measures,version=1.0}"
    old = idle.connect()  # stays connected to the old daemon
    asked = ("POST", "/predictions/measures", b'{"count": 2}', {"content-type": "application/json"})
    for _ in range(3):
        old.request(*asked)
        assert old.getresponse().read()
    before = values(idle.metrics)

    idle.tsctl("upgrade", "--grace", "60")
    at_once = values(idle.metrics)
    old.request(*asked)
    assert old.getresponse().read()
    assert idle.predict("measures", {"count": 5}).status == 200
    eventually(lambda: values(idle.metrics)[codes] == 5, "the old daemon has told of its last answer")
    old.close()
    eventually(
        lambda: values(idle.metrics)["tsctl_worker_exits_total{how=stopped,model=measures,version=1.0}"] >= 1,
        "it ended",
    )

    assert (before[codes], at_once[codes]) == (3, 3)
    rising = [name for name in before if ("_total" in name or "_count" in name) and "worker_cpu" not in name]
    assert [name for name in rising if at_once[name] < before[name]] == []  # a worker's is that of its process
    after = values(idle.metrics)
    assert (before[line], after[line], after[codes]) == (6, 13, 5)
    assert after["tsctl_request_latency_seconds_count{model=measures,outcome=ok,version=1.0}"] == 5
