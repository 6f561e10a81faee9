"""Defaults are timed after the first answer, and workers are replaced where one of them is a loss."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.processes.fakes import Peer
from tests.workers.processes.templates.test_tree import TemplateTree
from tsctl.daemon.workers.processes.templates.timing import AFTER
from tsctl.handlers import orders


class Shared(TemplateTree):
    """A daemon whose templates are made, and a worker that shares a model."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *, untimed: bool = True) -> None:
        super().__init__(monkeypatch, folder)
        self.templates.adopt()
        self.templates.warm()
        self.ready(self.first)
        self.worker = self.make("base_handler")
        self.fork(self.first)
        self.model: Peer = self.grown[-1]
        self.report(self.model, orders.Ready(1.0, untimed))
        assert isinstance(self.fork(self.model), orders.Fork)

    def time(self, code: int) -> None:
        """Let the process that times the model run, and end with a code."""
        self.clock.advance(AFTER)
        assert self.fork(self.model) == orders.Time()
        self.children.end(self._pids, code)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Shared]:
    shared = Shared(monkeypatch, tmp_path)
    yield shared
    shared.close()


def test_a_model_is_timed_some_seconds_after_its_template_is_ready(shared: Shared) -> None:
    shared.clock.advance(AFTER / 2)
    assert shared.model.hear() is None

    shared.time(0)

    assert not shared.worker.outdated


def test_a_model_whose_defaults_were_timed_before_is_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shared = Shared(monkeypatch, tmp_path, untimed=False)

    shared.clock.advance(2 * AFTER)

    assert shared.model.hear() is None
    shared.close()


def test_where_a_default_is_a_loss_the_template_goes_and_its_workers_are_replaced(shared: Shared) -> None:
    shared.time(orders.EXIT_LOAD_ANEW)

    assert shared.worker.outdated
    shared.make("base_handler")
    order = shared.fork(shared.first)
    assert isinstance(order, orders.Grow) and order.load is not None


@pytest.mark.parametrize("code", [0, 1, -14])
def test_where_none_is_or_that_could_not_be_seen_all_go_on(code: int, shared: Shared) -> None:
    shared.time(code)
    shared.make("base_handler")

    assert not shared.worker.outdated
    assert isinstance(shared.fork(shared.model), orders.Fork)


def test_a_template_that_has_gone_is_not_timed(shared: Shared) -> None:
    shared.templates.close()
    made = len(shared.children.processes)

    shared.clock.advance(AFTER)

    assert len(shared.children.processes) == made


def test_a_daemon_that_stops_ends_the_process(shared: Shared) -> None:
    shared.clock.advance(AFTER)
    shared.fork(shared.model)
    process = shared.children.processes[shared._pids]

    shared.templates.close()

    assert process.killed
