"""Starting and stopping the daemon."""

import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, TSCTL, Served, eventually, running


@pytest.mark.parametrize("doing", ["nothing", "a request", "loading"])
def test_workers_leave_when_the_daemon_is_killed_whatever_they_do(doing: str, idle: Served) -> None:
    idle.environment["TEST_GO"] = never = str(idle.folder / "never")
    idle.start()
    idle.tsctl("register", idle.pack_told("late" if doing == "loading" else "told"), "--workers", "2", "--no-wait")
    expected = "LOADING" if doing == "loading" else "READY"
    eventually(lambda: idle.describe("m")["tsctl"]["workers"] == [expected] * 2, "the workers are there")
    workers = [worker["pid"] for worker in idle.describe("m")["workers"]]
    clients = [idle.connect() for _ in range(2 if doing == "a request" else 0)]
    for client in clients:
        client.request("POST", "/predictions/m", f"wait {never}".encode())
    eventually(lambda: idle.describe("m")["tsctl"]["batching"]["running"] == len(clients), "the requests run")

    idle.kill()

    eventually(lambda: not any(map(running, workers)), "the workers leave")
    idle.start()
    assert "m" in idle.tsctl("ls")
    assert "daemon-lost" in idle.tsctl("events", "--level", "error")
    for client in clients:
        client.close()


@pytest.mark.thin
def test_stop_leaves_no_process_and_no_socket_and_keeps_what_the_next_run_restores(idle: Served) -> None:
    idle.forks = False
    idle.start()
    idle.register("echo")
    idle.register("obey")
    idle.tsctl("unregister", "obey")
    assert "daemon-lost" not in idle.tsctl("events")
    up = [idle.command("GET", "/tsctl/status").json["upSeconds"] for _ in range(2)]
    assert 0.0 < up[0] < up[1]
    pids = [idle.pid, *idle.pids("echo")]

    idle.tsctl("stop")

    assert not any(map(running, pids))
    assert not (idle.folder / "control.sock").exists()
    assert not (idle.folder / "control.pid").exists()
    (unpacked,) = (idle.folder / "state" / "models").iterdir()
    assert (unpacked / "echo.py").is_file()


def run_in_foreground(idle: Served) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [TSCTL, "run"], env=idle.environment, cwd=idle.folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    assert "listening on" in process.stderr.readline()
    return process


@pytest.mark.thin
def test_ctrl_c_stops_run_without_killing_its_workers_first(idle: Served) -> None:
    process = run_in_foreground(idle)
    idle.register("echo")

    os.killpg(process.pid, signal.SIGINT)

    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0
    assert "Traceback" not in said


@pytest.mark.thin
def test_a_listed_model_answers_whoever_asks_as_soon_as_the_daemon_listens(idle: Served) -> None:
    word = idle.folder / "word"
    idle.environment["TEST_WORD"] = str(word)
    idle.start("--models", idle.pack("fragile"), f"named={idle.pack('echo')}")
    with ThreadPoolExecutor() as clients:
        first = clients.submit(idle.ask, "/predictions/fragile", b"x")
        answers = [idle.ask(f"/predictions/{name}", b"x").status for name in ("named", "nobody")]
        word.touch()

        assert (first.result().status, answers) == (200, [200, 404])


def test_the_socket_is_private_whatever_the_umask(idle: Served, tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    idle.environment["TSCTL_SOCKET"] = str(folder / "control.sock")

    before = os.umask(0)
    try:
        idle.tsctl("start")
    finally:
        os.umask(before)

    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "control.sock").stat().st_mode & 0o777 == 0o600
    idle.note_address()
    idle.register("echo")
    idle.ask("/predictions/echo", b"x")
    state = idle.folder / "state"
    assert state.stat().st_mode & 0o777 == 0o700
    idle.tsctl("stop")
    kept = [*state.iterdir(), *(path for name in ("logs", "models", "sums") for path in (state / name).iterdir())]
    assert {path.name for path in kept} >= {"snapshot.json", "daemon.log", "access.log", "start.log"}
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


@pytest.mark.thin
def test_nobody_is_told_ready_before_all_that_is_listed_is_there_or_has_failed(idle: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as origin, ThreadPoolExecutor() as clients:
        origin.settimeout(PATIENCE)
        address = f"http://127.0.0.1:{origin.getsockname()[1]}/m.mar"
        starting = clients.submit(idle.run, "start", "--models", address, "--allowed-urls", address)  # waits, too
        with origin.accept()[0] as download:
            idle.note_address()
            while_it_comes = idle.ask("/ready", method="GET").status
            download.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        told = starting.result().stderr

    assert while_it_comes == 503
    assert f"warning: cannot load {address}: Failed to download archive from: {address}" in told
    eventually(lambda: idle.ask("/ready", method="GET").status == 200, "nothing is awaited any more")
