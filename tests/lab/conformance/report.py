"""docs/torchserve.md: what is the same, different on purpose, or wrong, case by case."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.lab.conformance.case import GROUPS, Case
from tests.lab.conformance.compare import Judgement, Verdict

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "torchserve.md"
MOVING = Path(__file__).parent / "moving.md"

Judged = Mapping[str, Mapping[str, Judgement]]  # group → case → judgement


def counts(judged: Judged) -> Counter[str]:
    """How many cases there are of each verdict."""
    found: Counter[str] = Counter()
    for group in GROUPS:
        for case in group.cases:
            if group.name in judged:
                found[judged[group.name][case.name].verdict.value] += 1
    return found


def summary(judged: Judged) -> str:
    """Return the terminal's output: the wrong ones in full, then the counts."""
    lines = []
    for group in GROUPS:
        for name, judgement in judged.get(group.name, {}).items():
            if judgement.verdict is Verdict.WRONG:
                lines.append(f"wrong: {group.name}: {name}")
                lines += [f"    {difference}" for difference in judgement.wrong]
    return "\n".join([*lines, _sentence(counts(judged))])


def page(judged: Judged) -> str:
    """The whole page."""
    lines = [
        "# TorchServe and tsctl, request by request",
        "",
        "Each row is a case of [tests/lab/conformance](../tests/lab/conformance): its requests were sent to TorchServe "
        "0.12.0,",
        "its last release, and are sent to tsctl's daemon, with the same archives. `python -m tests.lab conformance` "
        "compares with what",
        "was recorded and writes this page; `make heavy` compares, too.",
        "",
        _sentence(counts(judged)),
        "",
    ]
    for group in GROUPS:
        lines += [f"## {group.title}", "", "| case | verdict | why |", "|---|---|---|"]
        lines += [_row(case, judged[group.name][case.name]) for case in group.cases]
        lines.append("")
    lines.append(MOVING.read_text())
    return "\n".join(lines)


def _row(case: Case, judgement: Judgement) -> str:
    why = " ".join(purpose.reason for purpose in judgement.purposes)
    if judgement.wrong:
        why = "; ".join(str(difference) for difference in judgement.wrong)
    return f"| {_cell(case.name)} | {judgement.verdict.value} | {_cell(why)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _sentence(found: Counter[str]) -> str:
    words = [f"{found[verdict.value]} {verdict.value}" for verdict in Verdict]
    return f"{found.total()} cases: {', '.join(words)}."
