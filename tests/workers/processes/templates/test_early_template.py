"""The first template may be started before the daemon has imported the rest of itself."""

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.workers.processes.fakes import Peer
from tests.workers.processes.templates.test_tree import TemplateTree
from tsctl.daemon.workers.processes.spawn import StartedTemplate, open_channels
from tsctl.handlers import orders


def started() -> StartedTemplate:
    """Return a template that was started before there was a daemon around it, and keep the process's end."""
    ours, theirs, reading, writing = open_channels(socket.SOCK_SEQPACKET)
    writing.close()
    process: Any = StartedProcess(Peer(theirs))
    return StartedTemplate(process, ours, reading)


class StartedProcess:
    def __init__(self, peer: Peer) -> None:
        self.pid, self.peer, self.killed = 77, peer, False

    def kill(self) -> None:
        self.killed = True

    def wait(self) -> int:
        return 0


def test_a_template_that_was_started_before_is_the_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench, early = TemplateTree(monkeypatch, tmp_path), started()
    process: Any = early.process
    bench.templates.adopt()
    bench.templates.use_started(early)
    bench.templates.warm()
    told = bench.make()

    bench.ready(process.peer)

    assert bench.executed.modules == []
    assert isinstance(bench.fork(process.peer), orders.Fork)
    assert told.process is not None
    process.peer.close()
    bench.close()


def test_where_there_are_no_templates_it_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench, early = TemplateTree(monkeypatch, tmp_path, enabled=False), started()
    process: Any = early.process

    bench.templates.use_started(early)

    assert process.killed
    assert early.socket.fileno() == -1
    process.peer.close()
    bench.close()
