"""The verdict finds errors that are planted, and a few seconds of chaos have none."""

import contextlib
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.lab.chaos.steered.__main__ import storm
from tests.lab.chaos.steered.asking import HttpClient
from tests.lab.chaos.steered.outages import Outages
from tests.lab.chaos.steered.verdict import HELD, Asked, Epoch, Kind, Seen, Told, bounds, hold, judge
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.peer import Unanswered
from tests.lab.harness.protocol_clients import all_protocol_clients
from tests.lab.harness.verdict import Broken

ANY, NAMED = Asked("m", "", "7", "words"), Asked("m", "2.0", "7", "words")
HALVES = (("1", 1.0), ("2", 1.0))


@pytest.mark.slow
@pytest.mark.heavy
def test_some_seconds_of_chaos_have_no_error(tmp_path: Path) -> None:
    ledger = Ledger()

    storm(Served(tmp_path), Namespace(seed=5, seconds=20.0, upgrade_every=6.0), ledger)

    assert (ledger.unanswered, ledger.broken) == ([], [])
    makers = [make for each in all_protocol_clients() for make in each.steered(Outages())]
    names = {HttpClient.name}
    for make in makers:
        with contextlib.closing(make()) as client:
            names.add(client.name)
    assert all(ledger.done[name] for name in names)
    assert (
        ledger.done["answers held against weights"] + ledger.done["answers to clients that stay at their version"] > 0
    )


@pytest.mark.parametrize(
    ("asked", "told", "kind", "version"),
    [
        pytest.param(ANY, Told("200", "m 3.0 12 words"), Kind.RIGHT, "3.0", id="an answer"),
        pytest.param(NAMED, Told("OK", "m 2.0 12 words"), Kind.RIGHT, "2.0", id="an answer over gRPC"),
        pytest.param(ANY, Told("503", "ValueError: the bad version"), Kind.FAILED, "3.0", id="an error of the bad one"),
        pytest.param(ANY, Told("507", "The worker died again while"), Kind.DIED, "", id="two workers were killed"),
        pytest.param(ANY, Told("", "reset", killed=True), Kind.CUT_OFF, "", id="the daemon was killed"),
        pytest.param(ANY, Told("UNAVAILABLE", "", replaced=True), Kind.REPLACED, "", id="the daemon was replaced"),
        pytest.param(ANY, Told("503", "full", retry_after=True), Kind.REFUSED, "", id="come again"),
        pytest.param(
            ANY._replace(model=HELD), Told("503", "An operator unloaded it"), Kind.HELD, "", id="held by an operator"
        ),
    ],
)
def test_an_attempt_may_end_so(asked: Asked, told: Told, kind: Kind, version: str) -> None:
    assert judge(asked, told)[:2] == (kind, version)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        pytest.param(ANY, Told("200", "other 2.0 12 words"), id="of another model"),
        pytest.param(ANY, Told("OK", "m 2.0 12 other words"), id="to another request"),
        pytest.param(ANY, Told("200", "m 2.0"), id="half an answer"),
        pytest.param(NAMED, Told("200", "m 1.0 12 words"), id="of another version than the named one"),
        pytest.param(NAMED, Told("503", "ValueError: the bad version"), id="an error of a version that was not named"),
        pytest.param(ANY, Told("503", "is being stopped"), id="refused for good"),
        pytest.param(ANY, Told("503", "An operator unloaded it"), id="held, and no operator has unloaded it"),
        pytest.param(ANY, Told("UNAVAILABLE", ""), id="over gRPC, and the daemon was not replaced"),
        pytest.param(ANY, Told("500", "", retry_after=True), id="an error of the daemon"),
    ],
)
def test_an_attempt_may_not_end_so(asked: Asked, told: Told) -> None:
    with pytest.raises(Broken):
        judge(asked, told)


def test_a_connection_that_ends_though_the_daemon_was_there_is_no_answer() -> None:
    with pytest.raises(Unanswered):
        judge(ANY, Told("", "the connection was closed", replaced=True))


@pytest.mark.parametrize(
    ("epoch", "answers", "wrong"),
    [
        pytest.param(Epoch(0, 9, frozenset("12"), HALVES), "12" * 50, 0, id="as the weights say"),
        pytest.param(Epoch(0, 9, frozenset("12"), HALVES), "1" * 90 + "2" * 10, 2, id="of other weights"),
        pytest.param(Epoch(0, 9, frozenset("12"), HALVES), "1" * 90 + "2" * 10 + "-" * 80, 0, id="perhaps as they say"),
        pytest.param(Epoch(0, 9, frozenset("12")), "1" * 90 + "2" * 10, 0, id="while a rollout steers"),
        pytest.param(Epoch(0, 9, frozenset("1"), (("1", 1),)), "1112", 1, id="by a version that has none"),
        pytest.param(Epoch(0, 9, frozenset("12"), HALVES, True), "1" * 9, 5, id="of clients that moved"),
        pytest.param(Epoch(0, 1.5, frozenset("12"), HALVES), "1" * 9, 0, id="perhaps of a later route"),
    ],
)
def test_answers_are_held_against_the_route(epoch: Epoch, answers: str, wrong: int) -> None:
    seen = [Seen(1, 2, f"{user}", version.strip("-")) for user, version in enumerate(answers)]

    assert len(hold("m", [epoch], seen)[1]) == wrong


@pytest.mark.parametrize(
    ("asked", "answered", "version", "wrong"),
    [
        pytest.param(1, 2, "2", 1, id="before the second epoch"),
        pytest.param(3, 3, "2", 0, id="by the second route while it was being set"),
        pytest.param(3, 3, "1", 0, id="by the first route while the second was being set"),
        pytest.param(1, 9, "2", 0, id="by the second route, after having waited"),
        pytest.param(5, 9, "1", 1, id="by the first route, after it was replaced"),
        pytest.param(5, 9, "", 0, id="by none"),
    ],
)
def test_a_request_is_answered_by_a_route_of_its_time(asked: float, answered: float, version: str, wrong: int) -> None:
    epochs = [Epoch(0, 2.5, frozenset("1")), Epoch(4, 20, frozenset("2"))]

    assert len(hold("m", epochs, [Seen(asked, answered, "7", version)])[1]) == wrong


@pytest.mark.parametrize(
    ("kind", "count", "wrong"),
    [
        (Kind.REFUSED, 10, 0), (Kind.REFUSED, 11, 1), (Kind.REPLACED, 11, 1), (Kind.DIED, 5, 0), (Kind.DIED, 6, 1),
        (Kind.CUT_OFF, 14, 0), (Kind.CUT_OFF, 15, 1),
    ],
)  # fmt: skip
def test_refusals_are_bounded(kind: Kind, count: int, wrong: int) -> None:
    kinds = Counter({Kind.RIGHT: 1000 - count, kind: count})

    assert len(bounds(kinds, killed=10, cut_off=14, replaced=10)) == wrong
