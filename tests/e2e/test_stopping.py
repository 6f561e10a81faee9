"""SIGTERM lets what waits and runs finish, within the grace time; a second one ends it. Each is a clean end."""

import http.client
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.served import PATIENCE, TSCTL, Served, accepts, eventually, running


class Stopping:
    """A daemon in the foreground with the model `m`, which answers `wait PATH` when that file is there."""

    def __init__(self, served: Served, *options: str) -> None:
        self.served = served
        self.gate = served.folder / "gate"
        self._process = subprocess.Popen(
            [TSCTL, "run", *options], env=served.environment, cwd=served.folder, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        while "listening on" not in self._process.stderr.readline():
            assert self._process.poll() is None
        served.note_address()
        served.tsctl("register", served.pack_told("told"), "--batch-size", "1")
        self.workers = served.pids("m")

    def ask(self, *, runs: bool = False) -> http.client.HTTPConnection:
        """Send a request that is answered when the gate is there; return when the daemon has it."""
        before = self._counts()
        connection = self.served.connect()
        connection.request("POST", "/predictions/m", f"wait {self.gate}".encode())
        eventually(lambda: self._counts() != before, "the daemon has the request")
        assert self._counts()[0] == 1 or not runs
        return connection

    def _counts(self) -> tuple[int, int]:
        document = self.served.describe("m")
        return document["tsctl"]["batching"]["running"], document["jobQueueStatus"]["pendingRequests"]

    def terminate(self) -> None:
        """Send SIGTERM; return when it has been heard: nobody can connect any more."""
        self._process.terminate()
        eventually(lambda: not accepts(self.served.port), "the daemon accepts no connection")

    def signal_again(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def ended(self) -> int:
        """Wait until it has ended; give its exit code. Nothing of it is left."""
        said = self._process.communicate(timeout=PATIENCE)[1]
        assert "Traceback" not in said and "stopped" in said.splitlines()[-1]
        assert not any(map(running, self.workers))
        assert not (self.served.folder / "control.sock").exists()
        assert not (self.served.folder / "control.pid").exists()
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def answer(connection: http.client.HTTPConnection) -> tuple[int, str]:
    response = connection.getresponse()
    assert response.getheader("Connection") == "close"
    body = response.read().decode()
    connection.close()
    return response.status, body


@pytest.fixture
def stopping(idle: Served) -> Iterator[Stopping]:
    """One that would wait for ten minutes."""
    stopping = Stopping(idle, "--grace", "600")
    yield stopping
    stopping.kill()


@pytest.mark.thin
def test_what_runs_and_what_waits_is_finished_and_the_exit_code_is_0(stopping: Stopping) -> None:
    asked = [stopping.ask() for _ in range(4)]

    stopping.terminate()
    stopping.gate.touch()

    assert [answer(connection) for connection in asked] == [(200, "told")] * 4
    assert stopping.ended() == 0


def test_a_second_sigterm_answers_everybody_503_and_kills_the_workers(stopping: Stopping) -> None:
    asked = [stopping.ask() for _ in range(4)]
    stopping.terminate()
    assert all(map(running, stopping.workers))

    stopping.signal_again()

    answers = [answer(connection) for connection in asked]
    assert {status for status, _ in answers} == {503}
    assert "stopped while it ran this request: killed: it was stopped" in answers[0][1]
    assert "is being stopped" in answers[-1][1]
    assert stopping.ended() == 0
    stopping.served.start()
    eventually(lambda: stopping.served.ask("/ready", method="GET").status == 200, "what was registered is restored")
