"""Which template a worker comes from, and what happens when that one goes."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import write_files
from tests.kit.build import make_spec
from tests.kit.clock import FakeClock
from tests.workers.processes.fakes import Births, Peer, Told
from tsctl.daemon.workers.processes.spawn import Pipes
from tsctl.daemon.workers.processes.templates import tree as room
from tsctl.daemon.workers.processes.templates.tree import LINGER, PAUSE, Templates
from tsctl.handlers import orders


class Executed:
    """Stands for `execute`: no process starts, and a template's socket is the test's."""

    def __init__(self) -> None:
        self.pid = 1000
        self.modules: list[str] = []
        self.environments: list[dict[str, str]] = []
        self.peers: list[Peer] = []
        self.fails = False

    def __call__(self, module: str, sock: socket.socket, output: Pipes, environment: dict[str, str], *rest: Any) -> Any:
        if self.fails:
            raise OSError(11, "Resource temporarily unavailable")
        self.pid += 1
        self.modules.append(module)
        self.environments.append(environment)
        if module == "tsctl.handlers.template":
            self.peers.append(Peer(sock.dup()))
        return self

    def wait(self) -> int:
        return 0


class TemplateTree(Births):
    """All templates of a daemon; their processes are the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, enabled: bool = True) -> None:
        super().__init__()
        self.executed = Executed()
        monkeypatch.setattr(room, "execute", self.executed)
        monkeypatch.setattr(room, "follow", lambda loop, output, pipes: pipes.close())
        self.folder = folder
        self.clock = FakeClock()
        environment = {"HOME": "/root", "TSCTL_SOCKET": "/s"}
        loop: Any = self.loop
        children: Any = self.children
        self.templates = Templates(loop, self.clock, children, environment, enabled=enabled)
        self.homes: list[Any] = []
        self.grown: list[Peer] = []
        self._pids = 2000

    def make(self, handler: str = "mine.py", source: bytes = b"import torch", **spec: Any) -> Told:
        told = self.expect()
        write_files(self.folder, {"mine.py": source} if handler == "mine.py" else {})
        self.homes.append(self.templates.make(make_spec(handler=handler, model_dir=self.folder, **spec), told.request))
        return told

    def fork(self, peer: Peer) -> orders.Order | None:
        """Let a template take its next order and obey it."""
        order = peer.hear()
        if order is not None:
            descriptor, *outputs = peer.descriptors
            if isinstance(order, orders.Grow):
                self.grown.append(Peer(socket.socket(fileno=os.dup(descriptor))))
            peer.descriptors = []
            os.close(descriptor)
            for output in outputs:
                os.close(output)
            self._pids += 1
            self.report(peer, orders.Forked(self._pids))
        return order

    @property
    def first(self) -> Peer:
        return self.executed.peers[-1]

    def ready(self, peer: Peer) -> None:
        self.report(peer, orders.Ready(1.0))

    def close(self) -> None:
        self.templates.close()
        for peer in (*self.executed.peers, *self.grown):
            peer.close()
        super().close()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TemplateTree]:
    bench = TemplateTree(monkeypatch, tmp_path)
    bench.templates.adopt()
    bench.templates.warm()
    yield bench
    bench.close()


def test_the_first_template_warms_when_it_is_told_to(bench: TemplateTree) -> None:
    assert bench.executed.modules == ["tsctl.handlers.template"]
    assert bench.children.adopts
    environment = bench.executed.environments[0]
    assert environment["HOME"] == "/root" and environment["OMP_NUM_THREADS"] == "1"
    assert "TSCTL_SOCKET" not in environment


def test_a_worker_waits_for_the_template_that_warms(bench: TemplateTree) -> None:
    told = bench.make()
    assert bench.executed.modules == ["tsctl.handlers.template"]

    bench.ready(bench.first)

    assert isinstance(bench.fork(bench.first), orders.Fork)
    assert told.process is not None


def test_one_that_needs_no_torch_makes_no_template(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = TemplateTree(monkeypatch, tmp_path)
    bench.templates.adopt()

    bench.make(source=b"import json")
    assert bench.executed.modules == ["tsctl.handlers.worker"]

    bench.make(source=b"import torch")
    assert bench.executed.modules == ["tsctl.handlers.worker", "tsctl.handlers.template"]
    bench.close()


def test_one_that_needs_no_torch_does_not_wait_but_is_forked_later(bench: TemplateTree) -> None:
    told = bench.make(source=b"import json")
    assert bench.executed.modules == ["tsctl.handlers.template", "tsctl.handlers.worker"]
    assert told.process is not None

    bench.ready(bench.first)
    bench.make(source=b"import json")

    assert isinstance(bench.fork(bench.first), orders.Fork)


def test_an_environment_of_its_own_is_executed(bench: TemplateTree) -> None:
    bench.make(python=Path("/env/bin/python"))

    assert bench.executed.modules[1:] == ["tsctl.handlers.worker"]


def test_without_templates_everybody_is_executed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = TemplateTree(monkeypatch, tmp_path, enabled=False)
    bench.templates.adopt()
    bench.templates.warm()

    bench.make()

    assert bench.executed.modules == ["tsctl.handlers.worker"]
    assert not bench.children.adopts
    bench.close()


def test_what_mentions_torchvision_comes_from_a_template_that_has_it(bench: TemplateTree) -> None:
    bench.ready(bench.first)
    told = bench.make(source=b"import torchvision")

    assert bench.fork(bench.first) == orders.Grow(["tsctl.handlers.builtin.image_classifier"])
    (vision,) = bench.grown
    bench.ready(vision)
    assert isinstance(bench.fork(vision), orders.Fork)

    assert told.process is not None
    assert bench.homes == [None]


def test_workers_of_a_built_in_handler_share_a_template_with_its_model(bench: TemplateTree) -> None:
    bench.ready(bench.first)
    workers = [bench.make("base_handler"), bench.make("base_handler")]

    grow = bench.fork(bench.first)
    assert isinstance(grow, orders.Grow) and grow.load is not None and grow.load.handler == "base_handler"
    bench.ready(bench.grown[0])
    bench.fork(bench.grown[0])
    bench.fork(bench.grown[0])

    assert all(told.process is not None for told in workers)
    assert bench.homes[0] is bench.homes[1] is not None


def test_files_that_were_written_anew_are_loaded_anew(bench: TemplateTree) -> None:
    bench.ready(bench.first)
    bench.make("base_handler", threads=2)
    bench.fork(bench.first)
    bench.make("base_handler", threads=1, batch_size=8)
    assert bench.fork(bench.first) is None  # these make no other model

    write_files(bench.folder, {"weights.pt": b"other"})
    bench.make("base_handler")

    assert isinstance(bench.fork(bench.first), orders.Grow)
    assert bench.homes[0] is bench.homes[1] is not bench.homes[2]


@pytest.mark.parametrize(
    "spec",
    [{"gpu_ids": (0,), "devices": (0,)}, {"handler": "mine.py", "source": b"import torch"}, {"group": 2}],
    ids=["GPU", "own handler", "group of processes"],
)
def test_no_model_is_shared(bench: TemplateTree, spec: dict[str, Any]) -> None:
    bench.ready(bench.first)
    bench.make(**{"handler": "base_handler"} | spec)

    assert isinstance(bench.fork(bench.first), orders.Fork)


def test_a_model_that_cannot_be_shared_is_loaded_by_each_worker(bench: TemplateTree) -> None:
    bench.ready(bench.first)
    told = bench.make("base_handler")
    bench.fork(bench.first)

    bench.report(bench.grown[0], orders.Unfit("it has opened a file"))

    assert isinstance(bench.fork(bench.first), orders.Fork)
    assert told.process is not None
    bench.make("base_handler")
    assert isinstance(bench.fork(bench.first), orders.Fork)  # and is not tried again at once
    bench.clock.advance(PAUSE)
    bench.make("base_handler")
    assert isinstance(bench.fork(bench.first), orders.Grow)


def test_workers_are_executed_where_the_first_template_does_not_get_ready(bench: TemplateTree) -> None:
    told = bench.make()

    bench.report(bench.first, orders.Unfit("ImportError: no torch"))

    assert bench.executed.modules[1:] == ["tsctl.handlers.worker"]
    assert told.process is not None
    bench.make()
    assert bench.executed.modules[1:] == ["tsctl.handlers.worker"] * 2
    bench.clock.advance(PAUSE)
    bench.make()
    assert bench.executed.modules[-1] == "tsctl.handlers.template"


def test_one_that_was_killed_is_made_anew_by_the_next_worker(bench: TemplateTree) -> None:
    bench.ready(bench.first)

    bench.children.end(1001, -9)
    told = bench.make()

    assert bench.executed.modules == ["tsctl.handlers.template"] * 2
    bench.ready(bench.first)
    bench.fork(bench.first)
    assert told.process is not None


def test_a_worker_that_can_not_even_be_executed_fails(bench: TemplateTree) -> None:
    told = bench.make()
    bench.executed.fails = True

    bench.report(bench.first, orders.Unfit("for a test"))

    assert told.failure == "Resource temporarily unavailable"
    with pytest.raises(OSError, match="Resource temporarily"):
        bench.make()


def test_a_models_template_ends_some_time_after_its_last_worker(bench: TemplateTree) -> None:
    bench.ready(bench.first)
    bench.make("base_handler")
    bench.fork(bench.first)
    bench.ready(bench.grown[0])
    bench.fork(bench.grown[0])
    process = bench.children.processes[2001]

    bench.templates.done_with(bench.homes[0])
    bench.make("base_handler")
    bench.clock.advance(LINGER)
    assert not process.killed

    bench.templates.done_with(bench.homes[1])
    bench.clock.advance(LINGER / 2)
    assert not process.killed
    bench.clock.advance(LINGER / 2)
    assert process.killed


def kept(bench: TemplateTree) -> tuple[str, str]:
    """Make the template of a model with one worker, and let that worker end; return the model's name and version."""
    bench.ready(bench.first)
    bench.make("base_handler")
    bench.fork(bench.first)
    bench.ready(bench.grown[0])
    bench.fork(bench.grown[0])
    name, _, version = bench.homes[0].name.partition(" ")[0].partition("/")
    return name, version


def test_a_template_that_is_to_be_kept_stays_for_as_long_after_its_last_worker(bench: TemplateTree) -> None:
    named = kept(bench)
    process = bench.children.processes[2001]
    assert bench.templates.pid_of(*named) == 2001

    bench.templates.keep(*named, 300.0)
    bench.templates.done_with(bench.homes[0])

    bench.clock.advance(299.0)
    assert not process.killed
    bench.clock.advance(1.0)
    assert process.killed
    assert bench.templates.pid_of(*named) == 0


def test_an_earlier_end_of_its_workers_does_not_shorten_the_time_of_a_template(bench: TemplateTree) -> None:
    named = kept(bench)
    bench.templates.keep(*named, 300.0)
    bench.templates.done_with(bench.homes[0])
    bench.clock.advance(200.0)

    bench.make("base_handler")
    bench.fork(bench.grown[0])
    bench.templates.done_with(bench.homes[1])
    bench.clock.advance(299.0)

    assert not bench.children.processes[2001].killed


def test_a_template_without_workers_can_be_let_go_at_once(bench: TemplateTree) -> None:
    named = kept(bench)
    bench.templates.keep(*named, 300.0)
    bench.templates.done_with(bench.homes[0])

    bench.templates.keep(*named, 0.0)
    bench.clock.settle()

    assert bench.children.processes[2001].killed


def test_a_model_that_is_loaded_for_nobody_any_more_is_given_up(bench: TemplateTree) -> None:
    bench.ready(bench.first)
    told = bench.make("base_handler")
    bench.fork(bench.first)

    bench.templates.cancel(told.request)

    assert bench.children.processes[2001].killed
    assert not told.open


def test_when_the_daemon_stops_every_template_is_killed(bench: TemplateTree) -> None:
    bench.ready(bench.first)
    bench.make("base_handler")
    bench.fork(bench.first)

    bench.templates.close()

    assert bench.children.processes[1001].killed and bench.children.processes[2001].killed
    assert bench.told[0].failure == "the daemon stops"
    assert bench.executed.modules == ["tsctl.handlers.template"]
