"""The daemon answers as the recorded TorchServe did, or differently on purpose. Needs no Java."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.conformance import report
from tests.lab.conformance.case import GROUPS, Case, Group, Variant
from tests.lab.conformance.compare import Judgement
from tests.lab.conformance.purpose import PURPOSES
from tests.lab.conformance.side import Side, our_daemon

pytestmark = pytest.mark.heavy

CASES = [
    pytest.param(group, case, id=f"{group.name}: {case.name}") for group in GROUPS for case in group.cases
]  # fmt: skip


class Replayed:
    """The daemons, one at a time; a group is put to that of its variant when a test first asks for one of its cases."""

    def __init__(self) -> None:
        self._running = contextlib.ExitStack()
        self._variant: Variant | None = None
        self._side: Side | None = None
        self._judged: dict[str, dict[str, Judgement]] = {}

    def close(self) -> None:
        self._running.close()

    def group(self, group: Group) -> dict[str, Judgement]:
        if group.name not in self._judged:
            try:
                self._judged[group.name] = self._daemon(group.variant).replay(group)
            except BaseException:
                self._side = None  # the next case asks a daemon that this group has not been put to: it counts requests
                raise
        return self._judged[group.name]

    def _daemon(self, variant: Variant) -> Side:
        if self._side is None or self._variant != variant:
            self._running.close()
            folder = self._running.enter_context(tempfile.TemporaryDirectory())
            self._side = self._running.enter_context(our_daemon(Path(folder), variant))
            self._variant = variant
        return self._side


@pytest.fixture(scope="module")
def replayed() -> Iterator[Replayed]:
    replayed = Replayed()
    yield replayed
    replayed.close()


@pytest.mark.parametrize(("group", "case"), CASES)
def test_our_answer_is_the_recorded_one_or_different_on_purpose(replayed: Replayed, group: Group, case: Case) -> None:
    judgement = replayed.group(group)[case.name]

    assert [str(difference) for difference in judgement.wrong] == []


def test_every_purpose_is_seen(replayed: Replayed) -> None:
    """One that no case shows any more is to be deleted."""
    seen = {
        purpose.reason
        for group in GROUPS
        for judgement in replayed.group(group).values()
        for purpose in judgement.purposes
    }

    assert {purpose.reason for purpose in PURPOSES if purpose.always} <= seen


def test_the_page_is_what_was_seen(replayed: Replayed) -> None:
    """`python -m tests.lab conformance` writes it anew."""
    judged = {group.name: replayed.group(group) for group in GROUPS}

    assert report.page(judged) == report.PAGE.read_text()
