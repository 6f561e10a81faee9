"""One template, from the daemon's side: births wait, are ordered one at a time, and never get lost."""

import socket
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.workers.processes.fakes import Births, FakeProcess, Peer, Told
from tsctl.daemon.workers.processes.spawn import SpawnRequest
from tsctl.daemon.workers.processes.templates.template import Template, TemplateState
from tsctl.handlers import orders


class OneTemplate(Births):
    """A template whose process is the test, and what it gives back."""

    def __init__(self) -> None:
        super().__init__()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.peer = Peer(theirs)
        self.given_back: list[SpawnRequest] = []
        self.gone: list[Template] = []
        self.template = Template(
            "torch",
            None,
            ours,
            cast(Any, self.loop),
            cast(Any, self.children),
            lambda request, template: self.given_back.append(request),
            self.gone.append,
        )

    def ready(self) -> "OneTemplate":
        self.say(orders.Ready(1.0))
        return self

    def say(self, report: orders.Report) -> None:
        self.report(self.peer, report)

    def make(self) -> Told:
        told = self.expect()
        self.template.make(told.request)
        return told

    def close(self) -> None:
        self.template.close("the test is over")
        self.peer.close()
        super().close()


@pytest.fixture
def bench() -> Iterator[OneTemplate]:
    bench = OneTemplate()
    yield bench
    bench.close()


def test_a_birth_waits_until_the_template_is_warm_and_its_end_is_told(bench: OneTemplate) -> None:
    told = bench.make()
    assert bench.peer.hear() is None

    bench.ready()

    assert bench.peer.hear() == told.request.order
    assert len(bench.peer.descriptors) == 3
    bench.say(orders.Forked(77))
    assert told.process is bench.children.processes[77]
    assert not told.open
    bench.children.end(77, -11)
    assert told.over and told.process.returncode == -11


def test_orders_go_one_at_a_time(bench: OneTemplate) -> None:
    bench.ready()
    first, second = bench.make(), bench.make()

    assert bench.peer.hear() is not None
    assert (bench.peer.hear(), bench.children.expected) == (None, 1)
    bench.say(orders.Forked(77))
    assert bench.peer.hear() is not None
    bench.say(orders.Forked(78))

    assert (first.process, second.process) == (bench.children.processes[77], bench.children.processes[78])
    assert bench.children.expected == 0


def test_what_waits_is_given_back_when_it_is_unfit(bench: OneTemplate) -> None:
    told = bench.make()

    bench.say(orders.Unfit("it has 2 threads"))

    assert bench.given_back == [told.request] and told.open
    assert bench.gone == [bench.template]
    assert (bench.template.state, bench.template.why) == (TemplateState.GONE, "it has 2 threads")
    assert bench.template.never_ready


def test_what_it_refuses_is_given_back_and_it_is_left(bench: OneTemplate) -> None:
    bench.ready()
    told = bench.make()

    bench.say(orders.OrderRefused("Cannot allocate memory"))

    assert bench.given_back == [told.request] and told.open
    assert bench.template.state is TemplateState.GONE
    assert bench.children.expected == 0
    assert not bench.template.never_ready


@pytest.mark.parametrize("how", ["its socket closes first", "its process ends first"])
def test_when_it_dies_the_ordered_birth_fails_and_the_others_are_given_back(bench: OneTemplate, how: str) -> None:
    bench.template.born(bench.children.watch_child(5, bench.template.ended))
    bench.ready()
    ordered, waiting = bench.make(), bench.make()

    if how == "its socket closes first":
        bench.peer.close()
        bench.loop.turn()
    bench.children.end(5, -9)

    assert "has gone: it was killed by signal 9" in ordered.failure and not ordered.open
    assert bench.given_back == [waiting.request] and waiting.open
    assert bench.children.expected == 0


def test_a_birth_that_nobody_wants_any_more_is_passed_over(bench: OneTemplate) -> None:
    unwanted, wanted = bench.make(), bench.make()
    unwanted.request.cancelled = True
    unwanted.request.close()

    bench.ready()
    bench.say(orders.Forked(77))

    assert unwanted.process is None and wanted.process is not None


def test_a_process_that_is_born_unwanted_is_killed(bench: OneTemplate) -> None:
    bench.ready()
    told = bench.make()
    told.request.cancelled = True

    bench.say(orders.Forked(77))

    assert told.process is None
    assert bench.children.processes[77].killed


def test_it_is_wanted_while_somebody_waits(bench: OneTemplate) -> None:
    assert not bench.template.wanted
    told = bench.make()
    assert bench.template.wanted

    told.request.cancelled = True

    assert not bench.template.wanted


def test_an_order_that_is_too_long_is_given_back(bench: OneTemplate) -> None:
    bench.ready()
    told = bench.expect(orders.Fork(1, "x" * orders.LARGEST))

    bench.template.make(told.request)

    assert bench.given_back == [told.request]
    assert bench.template.state is TemplateState.READY


def test_what_is_wanted_of_one_that_has_gone_is_given_back_and_it_is_killed_if_it_is_born_later(
    bench: OneTemplate,
) -> None:
    process = FakeProcess(5)
    bench.template.close("for a test")

    told = bench.make()
    bench.template.born(process)

    assert bench.given_back == [told.request] and process.killed
