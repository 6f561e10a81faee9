"""A template forks workers whose parent is the daemon, or says why it does not."""

import json
import os
from pathlib import Path

import pytest

from tests.handlers.forked import kill, status_of, template
from tests.handlers.samples import row, write
from tsctl.handlers import orders, wire

pytestmark = pytest.mark.slow

ANSWERS = """
    import json, os, random, signal, sys
    def handle(data, context):
        facts = {
            "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0), "directory": os.getcwd(),
            "threads": os.environ["OMP_NUM_THREADS"], "random": random.random(), "path": sys.path[:2],
            "safe": sys.flags.safe_path, "stdin": os.readlink("/proc/self/fd/0"),
            "descriptors": len(os.listdir("/proc/self/fd")),
        }
        print("asked", flush=True)
        return data and [facts for _ in data]
"""
LOADED_ONCE = """
    import pathlib
    import torch
    with open(pathlib.Path(__file__).parent / "loads", "a") as file:
        file.write("loaded\\n")
    {further}
    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2
"""


def load_of(directory: Path, handler: str = "mine.py", **model: str) -> wire.Load:
    return wire.Load("net", "1.0", str(directory), handler, {"model": model}, batch_size=2, threads=1)


def test_a_worker_is_as_if_it_had_been_executed(tmp_path: Path) -> None:
    write(tmp_path / "mine.py", ANSWERS)
    with template() as peer:
        assert isinstance(peer.hear(), orders.Ready)
        worker = peer.fork(tmp_path, threads=3)
        assert worker.hear() == wire.Hello(worker.pid)
        worker.tell(load_of(tmp_path))
        assert isinstance(worker.hear(), wire.Loaded)
        worker.tell(wire.Predict(1, [row(b"")]))
        done = worker.hear()
        assert worker.end() == 0
        printed = worker.printed()

    assert isinstance(done, wire.Done)
    facts = json.loads(done.answers[0].body)
    assert (facts["pid"], facts["parent"], facts["session"]) == (worker.pid, os.getpid(), worker.pid)
    assert (facts["directory"], facts["path"][0], facts["safe"]) == (str(tmp_path), str(tmp_path), True)
    assert facts["threads"] == "3"
    assert facts["descriptors"] <= 6  # three standard ones, its socket, the listing itself
    assert printed.count("asked") == 2  # once while it loaded


def test_workers_draw_different_numbers(tmp_path: Path) -> None:
    write(tmp_path / "mine.py", "    import random\n    def handle(data, context): return data and [random.random()]\n")
    drawn = []
    with template() as peer:
        peer.hear()
        for _ in range(2):
            worker = peer.fork(tmp_path)
            worker.hear()
            worker.tell(load_of(tmp_path))
            worker.hear()
            worker.tell(wire.Predict(1, [row(b"")]))
            done = worker.hear()
            assert isinstance(done, wire.Done)
            drawn.append(done.answers[0].body)
            worker.end()

    assert drawn[0] != drawn[1]


def test_workers_outlive_their_template_and_nobody_outlives_the_daemon(tmp_path: Path) -> None:
    write(tmp_path / "mine.py", ANSWERS)
    with template() as peer:
        peer.hear()
        worker = peer.fork(tmp_path)
        kill(peer.pid)
        assert worker.hear() == wire.Hello(worker.pid)
        status = status_of(worker.pid)
        worker.tell(load_of(tmp_path))

        assert isinstance(worker.hear(), wire.Loaded)
        assert status["PPid"] == str(os.getpid())
        assert worker.end() == 0


def test_a_worker_that_cannot_load_ends_with_the_code_for_that(tmp_path: Path) -> None:
    write(tmp_path / "mine.py", "    def handle(data, context):\n        raise ValueError('no weights')\n")
    with template() as peer:
        peer.hear()
        worker = peer.fork(tmp_path)
        worker.hear()
        worker.tell(load_of(tmp_path))
        failed = worker.hear()

        assert isinstance(failed, wire.LoadFailed)
        assert "handlers/" not in failed.traceback
        assert worker.end() == wire.EXIT_LOAD_FAILED


def test_twenty_forks_leave_nothing_behind(tmp_path: Path) -> None:
    with template() as peer:
        peer.hear()
        peer.fork(tmp_path).end()
        before = sorted(os.listdir(f"/proc/{peer.pid}/fd"))
        for _ in range(20):
            worker = peer.fork(tmp_path)
            worker.hear()
            assert worker.end() == 0

        assert sorted(os.listdir(f"/proc/{peer.pid}/fd")) == before
        with pytest.raises(ChildProcessError):  # not even of those between
            os.waitpid(-peer.pid - 1, os.WNOHANG)


def test_a_template_grows_from_a_template_and_outlives_it(tmp_path: Path) -> None:
    with template() as peer:
        peer.hear()
        grown = peer.grow(["colorsys"])
        assert isinstance(grown.hear(), orders.Ready)
        kill(peer.pid)
        worker = grown.fork(tmp_path)

        assert worker.hear() == wire.Hello(worker.pid)
        assert worker.end() == 0
        grown.sock.close()
        assert os.waitpid(grown.pid, 0) == (grown.pid, 0)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        pytest.param("import threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()", "2 threads"),
        pytest.param("import subprocess\nkeep = subprocess.Popen(['sleep', '60'])", "started a process"),
        pytest.param("raise ValueError('broken')", "ValueError: broken"),
        pytest.param("raise SystemExit(1)", "SystemExit: 1"),
    ],
)
def test_what_cannot_be_forked_says_why(module: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "unfit.py").write_text(module)
    with template("'unfit',", {"PYTHONPATH": str(tmp_path)}) as peer:
        report = peer.hear()

        assert isinstance(report, orders.Unfit)
        assert reason in report.reason


def test_workers_share_the_model_that_their_template_has_loaded(tmp_path: Path) -> None:
    write(tmp_path / "net.py", LOADED_ONCE.format(further=""))
    load = load_of(tmp_path, "base_handler", modelFile="net.py")
    answers = []
    with template() as peer:
        peer.hear()
        shared = peer.grow([], load)
        assert isinstance(shared.hear(), orders.Ready)
        for _ in range(2):
            worker = shared.fork(tmp_path)
            worker.hear()
            worker.tell(load)
            assert isinstance(worker.hear(), wire.Loaded)
            worker.tell(wire.Predict(1, [row(b"[1.5]", "application/json")]))
            done = worker.hear()
            assert isinstance(done, wire.Done)
            answers.append(done.answers[0].body)
            assert worker.end() == 0

    assert answers == [b"[\n  3.0\n]"] * 2
    assert (tmp_path / "loads").read_text() == "loaded\n"


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("further", "reason"),
    [
        pytest.param("kept = open(__file__)", "it has opened", id="an open file would be shared"),
        pytest.param("import subprocess; kept = subprocess.Popen(['true'])", "started a process", id="a process"),
        pytest.param("raise ImportError('no such thing')", "ImportError: no such thing", id="it does not load"),
    ],
)
def test_a_model_whose_file_does_more_than_define_it_is_not_shared(further: str, reason: str, tmp_path: Path) -> None:
    write(tmp_path / "net.py", LOADED_ONCE.format(further=further))
    with template() as peer:
        peer.hear()
        shared = peer.grow([], load_of(tmp_path, "base_handler", modelFile="net.py"))
        report = shared.hear()

        assert isinstance(report, orders.Unfit)
        assert reason in report.reason
        assert os.waitpid(shared.pid, 0) == (shared.pid, 0)
        assert isinstance(peer.fork(tmp_path).hear(), wire.Hello)  # the others go on


def test_it_forks_no_more_once_it_has_a_thread(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "import threading, os\nfrom tsctl.handlers import template\nfreeze = template.freeze\n"
        "def late(**_):\n    threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "template.freeze = late\n"
    )
    with template("'late',", {"PYTHONPATH": str(tmp_path)}) as peer:
        assert isinstance(peer.hear(), orders.Ready)
        report, _, _ = peer.order(orders.Fork(1, str(tmp_path)))

        assert report == orders.OrderRefused("it has 2 threads")
