"""The daemon answers as the recorded TorchServe did, or differently on purpose. Needs no Java."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.case import Case, Group
from tests.conformance.cases import GROUPS
from tests.conformance.compare import Judgement
from tests.conformance.ours import our_daemon
from tests.conformance.pending import PENDING
from tests.conformance.replay import replay
from tests.conformance.side import Side

pytestmark = pytest.mark.slow

CASES = [
    pytest.param(group, case, id=f"{group.name}: {case.name}") for group in GROUPS for case in group.cases
]  # fmt: skip


class Replayed:
    """One daemon; a group is put to it when a test first asks for one of its cases."""

    def __init__(self, side: Side) -> None:
        self.group = cache(lambda group: replay(group, side))

    def judgement(self, group: Group, case: Case) -> Judgement:
        return self.group(group)[case.name]


@pytest.fixture(scope="module")
def replayed() -> Iterator[Replayed]:
    with tempfile.TemporaryDirectory() as folder, our_daemon(Path(folder)) as side:
        yield Replayed(side)


@pytest.mark.parametrize(("group", "case"), CASES)
def test_our_answer_is_the_recorded_one_or_different_on_purpose(replayed: Replayed, group: Group, case: Case) -> None:
    if case.needs in PENDING:
        pytest.skip(f"waits for {case.needs}")

    judgement = replayed.judgement(group, case)

    assert [str(difference) for difference in judgement.wrong] == []
