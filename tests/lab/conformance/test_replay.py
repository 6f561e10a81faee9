"""The daemon answers as the recorded TorchServe did, or differently on purpose. Needs no Java.

TorchServe 0.12.0 is its last release, so that what it answers does not change: what recorded it, for which a new case
needs Java 17, is read with `git show 8b965de0:tests/lab/conformance/torchserve.py`. `python -m tests.lab conformance`
runs these tests, and writes docs/torchserve.md; `-k bodies:` takes a group of cases.
"""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit import told
from tests.kit.shelf import needs
from tests.lab.conformance.case import GROUPS, VARIANTS, Case, Group
from tests.lab.conformance.compare import PURPOSES, Judgement, Verdict
from tests.lab.conformance.side import Side, our_daemon
from tests.places import ROOT

pytestmark = pytest.mark.heavy

PAGE = ROOT / "docs" / "torchserve.md"
MOVING = Path(__file__).with_name("moving.md")
HEAD = """\
# TorchServe and tsctl, request by request

Each row is a case of [tests/lab/conformance](../tests/lab/conformance): its requests were sent to TorchServe 0.12.0,
its last release, and are sent to tsctl's daemon, with the same archives. `python -m tests.lab conformance`
compares with what was recorded and writes this page; `make heavy` compares, too.
"""
Judged = dict[str, dict[str, Judgement]]  # group → case → judgement
Replay = Callable[[str], dict[str, Judgement]]
# Text of a case's requests → the extension that answers them.
ANSWERED_BY = {b" /metrics": "prometheus", b"customized=true": "customized", b" /v2": "oip"}
MODES = "torchserve_logs"  # reads the metrics modes that some groups set


def needed(group: Group, case: Case) -> list[pytest.MarkDecorator]:
    """Return the marks of a case that needs extensions."""
    sent = b"".join(step.encode() for step in case.steps)
    names = [name for asked, name in ANSWERED_BY.items() if asked in sent]
    return [needs(name) for name in (*names, *[MODES] * ("metrics_mode" in VARIANTS[group.variant].properties))]


def needs_all(test: Callable[[Replay], None]) -> Callable[[Replay], None]:
    """Mark a test of all cases."""
    for name in (*ANSWERED_BY.values(), MODES):
        test = needs(name)(test)
    return test


CASES = [
    pytest.param(name, case, id=f"{name}: {case}", marks=needed(group, group.cases[case]))
    for name, group in GROUPS.items()
    for case in group.cases
]


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    """A group's judgements: it is put to a daemon of its variant when a test first asks for one of its cases."""
    judged, sides = Judged(), dict[str, Side]()
    with contextlib.ExitStack() as running:

        def replay(name: str) -> dict[str, Judgement]:
            if name not in judged:
                variant = GROUPS[name].variant
                # After an error, too, the next case asks a daemon that this group was not put to: it counts requests.
                side = sides.pop(variant, None)
                if side is None:
                    sides.clear()
                    running.close()
                    folder = running.enter_context(tempfile.TemporaryDirectory())
                    side = running.enter_context(our_daemon(Path(folder), VARIANTS[variant]))
                judged[name] = side.replay(GROUPS[name])
                sides[variant] = side
            return judged[name]

        yield replay


@pytest.mark.parametrize(("group", "case"), CASES)
def test_our_answer_is_the_recorded_one_or_different_on_purpose(replay: Replay, group: str, case: str) -> None:
    assert [str(difference) for difference in replay(group)[case].wrong] == []


@needs_all
def test_every_purpose_is_seen(replay: Replay) -> None:
    """One that no case shows any more is to be deleted."""
    seen = {purpose.why for group in GROUPS for judgement in replay(group).values() for purpose in judgement.purposes}

    assert {purpose.why for purpose in PURPOSES if purpose.always} <= seen


@needs_all
def test_the_page_is_what_was_seen(replay: Replay) -> None:
    page = page_of({name: replay(name) for name in GROUPS})
    if told.WRITES:
        PAGE.write_text(page)

    assert page == PAGE.read_text()


def page_of(judged: Judged) -> str:
    """The whole page."""
    found = Counter(judgement.verdict for group in judged.values() for judgement in group.values())
    lines = [HEAD, f"{found.total()} cases: {', '.join(f'{found[each]} {each.value}' for each in Verdict)}.", ""]
    for name, group in GROUPS.items():
        lines += [f"## {group.title}", "", "| case | verdict | why |", "|---|---|---|"]
        lines += [_row(case, judged[name][case]) for case in group.cases]
        lines.append("")
    lines.append(MOVING.read_text())
    return "\n".join(lines)


def _row(case: str, judgement: Judgement) -> str:
    why = " ".join(purpose.why for purpose in judgement.purposes)
    return f"| {_cell(case)} | {judgement.verdict.value} | {_cell(why)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
