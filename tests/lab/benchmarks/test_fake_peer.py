"""A whole measurement, of a server that needs nothing installed."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.benchmarks.measuring import processes
from tests.lab.benchmarks.models import Served
from tests.lab.benchmarks.peers.fake import Fake
from tests.lab.benchmarks.peers.peer import DidNotStart, Running, Setup
from tests.lab.benchmarks.workloads import WORKLOADS, kill, load

pytestmark = pytest.mark.slow


@pytest.fixture
def served(tmp_path: Path) -> Served:
    body = tmp_path / "body"
    body.write_bytes(b"x" * 100)
    return Served("constant", body, lambda answer: answer == b"100")


@pytest.fixture
def running(tmp_path: Path, served: Served) -> Iterator[Running]:
    (tmp_path / "server").mkdir()
    started = Fake().start(Setup(served, tmp_path / "server"))
    yield started
    started.stop()


def test_it_is_started_until_it_answers_and_stopped_whole(tmp_path: Path, served: Served) -> None:
    running = Fake().start(Setup(served, tmp_path))
    pids = [process.pid for process in processes.tree(running.process.pid)]

    running.stop()

    assert running.first_answer > 0
    assert len(pids) == 2
    assert [process.pid for pid in pids for process in processes.tree(pid)] == []


def test_what_answers_wrongly_does_not_start(tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(answer: bytes) -> bool:
        monkeypatch.setattr(Fake, "patience", 0.0)  # it ends with the first answer
        return False

    with pytest.raises(DidNotStart, match="its last answer was 200 b'100'"):
        Fake().start(Setup(replace(served, right=wrong), tmp_path))


def test_its_cost_is_that_of_all_its_processes(running: Running) -> None:
    before = running.cpu
    for _ in range(50):
        assert running.ask(b"x" * 100).status == 200

    assert running.cpu >= before
    assert running.pss > 2**20
    assert running.worker != running.process.pid


def test_a_worker_that_is_replaced_serves_again(
    running: Running, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kill, "QUIET", 0.1)
    monkeypatch.setattr(kill, "AFTER", 0.1)

    found = kill.run(running, served)

    assert found["again"] < kill.PATIENCE
    assert found["hanging"] == 0


@pytest.mark.skipif(shutil.which("wrk") is None, reason="needs the program wrk")
def test_load_gives_figures_for_each_number_of_connections(running: Running, served: Served) -> None:
    workload = replace(WORKLOADS["constant"], connections=(1, 2), seconds=1.0, warm_up=0.0)

    found = dict(load.run(running, workload, served))

    assert set(found) == {1, 2}
    assert all(each["rate"] > 0 and each["errors"] == each["wrong"] == 0 for each in found.values())
    assert all(0 < each["p50"] <= each["p99"] for each in found.values())
