"""Requests of the demo: none that failed is lost on the way to the exit code."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tsctl.client import DaemonClient
from tsctl.errors import CliError
from tsctl.generator import Generator
from tsctl.showcase.facts import ShowcaseFacts
from tsctl.showcase.load import AskingClients
from tsctl.showcase.measuring import mean_batch
from tsctl.showcase.stage import Stage

DONE = {
    "stage": "done", "requests": 10, "errors": 4, "statuses": {"200": 6, "503": 1}, "reasons": {},
    "failures": {"closed": 2, "timeout": 1},
}  # fmt: skip


class FakeGenerator:
    """A load generator with given events; an error ends them."""

    def __init__(self, *events: dict[str, Any] | CliError) -> None:
        self._events = events
        self.broken_off = threading.Event()

    def break_off(self) -> None:
        self.broken_off.set()

    def events(self) -> Iterator[dict[str, Any]]:
        for event in self._events:
            if isinstance(event, CliError):
                raise event
            yield event


def asked(fake: FakeGenerator) -> tuple[AskingClients, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    return AskingClients(cast(Generator, fake), lambda answered, failed: told.append((answered, failed))), told


def stage(facts: ShowcaseFacts, failures: list[str]) -> Stage:
    return Stage(DaemonClient(Path("nowhere")), Path(), facts, b"", Path(), lambda: 0.0, failures)


def test_the_clients_tell_what_was_answered_and_what_failed() -> None:
    clients, told = asked(FakeGenerator({"stage": "running", "requests": 5, "errors": 0}, DONE))

    clients.stop()

    assert told == [(5, 0), (6, 4)]
    assert clients.failures == ["1 × status 503", "2 × connection closed without an answer", "1 × not answered in time"]


def test_clients_that_end_by_themselves_are_an_error() -> None:
    clients, _ = asked(FakeGenerator(CliError("the model answered the first request with status 500")))

    with pytest.raises(CliError, match="status 500"):
        clients.stop()


def test_a_failed_request_ends_the_demo_with_its_count_and_kind() -> None:
    stage(ShowcaseFacts(bytes(64), "", 8, answered=100), []).check()
    facts = ShowcaseFacts(bytes(64), "", 8, answered=97, failed=3)

    with pytest.raises(CliError, match="3 of 100 requests failed: 3 × status 503") as raised:
        stage(facts, ["3 × status 503"]).check()
    assert raised.value.exit_code == 1


@pytest.mark.parametrize(
    ("before", "after", "mean"),
    [
        pytest.param({}, {1: 10}, 1.0, id="ones"),
        pytest.param({1: 10}, {1: 12, 16: 2}, 8.5, id="only what came since counts"),
        pytest.param({1: 10}, {1: 10}, 0.0, id="none"),
    ],
)
def test_the_mean_batch_is_that_of_the_run(before: dict[int, int], after: dict[int, int], mean: float) -> None:
    assert mean_batch(before, after) == mean
