"""The daemon answers as the recorded TorchServe did, or differently on purpose. Needs no Java.

TorchServe 0.12.0 is its last release, so that what it answers does not change: what recorded it, for which a new case
needs Java 17, is read with `git show 8b965de0:tests/lab/conformance/torchserve.py`. `python -m tests.lab conformance`
runs these tests, and writes docs/torchserve.md; `-k bodies:` takes a group of cases.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import told
from tests.lab.conformance import report
from tests.lab.conformance.case import GROUPS, VARIANTS
from tests.lab.conformance.compare import Judgement
from tests.lab.conformance.purpose import PURPOSES
from tests.lab.conformance.side import Side, our_daemon

pytestmark = pytest.mark.heavy

CASES = [pytest.param(name, case, id=f"{name}: {case}") for name, group in GROUPS.items() for case in group.cases]


class Replayed:
    """The daemons, one at a time; a group is put to that of its variant when a test first asks for one of its cases."""

    def __init__(self) -> None:
        self._running = contextlib.ExitStack()
        self._variant = ""
        self._side: Side | None = None
        self._judged: dict[str, dict[str, Judgement]] = {}

    def close(self) -> None:
        self._running.close()

    def group(self, name: str) -> dict[str, Judgement]:
        if name not in self._judged:
            try:
                self._judged[name] = self._daemon(GROUPS[name].variant).replay(GROUPS[name])
            except BaseException:
                self._side = None  # the next case asks a daemon that this group has not been put to: it counts requests
                raise
        return self._judged[name]

    def _daemon(self, variant: str) -> Side:
        if self._side is None or self._variant != variant:
            self._running.close()
            folder = self._running.enter_context(tempfile.TemporaryDirectory())
            self._side = self._running.enter_context(our_daemon(Path(folder), VARIANTS[variant]))
            self._variant = variant
        return self._side


@pytest.fixture(scope="module")
def replayed() -> Iterator[Replayed]:
    replayed = Replayed()
    yield replayed
    replayed.close()


@pytest.mark.parametrize(("group", "case"), CASES)
def test_our_answer_is_the_recorded_one_or_different_on_purpose(replayed: Replayed, group: str, case: str) -> None:
    assert [str(difference) for difference in replayed.group(group)[case].wrong] == []


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
    page = report.page({name: replayed.group(name) for name in GROUPS})
    if told.WRITES:
        report.PAGE.write_text(page)

    assert page == report.PAGE.read_text()
