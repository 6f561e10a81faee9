"""docs/torchserve.md: what is the same, different on purpose, or wrong, case by case."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.lab.conformance.case import GROUPS
from tests.lab.conformance.compare import Judgement, Verdict

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "torchserve.md"
MOVING = Path(__file__).parent / "moving.md"

Judged = Mapping[str, Mapping[str, Judgement]]  # group → case → judgement


def page(judged: Judged) -> str:
    """The whole page."""
    found = Counter(judgement.verdict for group in judged.values() for judgement in group.values())
    lines = [
        "# TorchServe and tsctl, request by request",
        "",
        "Each row is a case of [tests/lab/conformance](../tests/lab/conformance): its requests were sent to TorchServe "
        "0.12.0,",
        "its last release, and are sent to tsctl's daemon, with the same archives. `python -m tests.lab conformance` "
        "compares with what",
        "was recorded and writes this page; `make heavy` compares, too.",
        "",
        f"{found.total()} cases: {', '.join(f'{found[verdict]} {verdict.value}' for verdict in Verdict)}.",
        "",
    ]
    for name, group in GROUPS.items():
        lines += [f"## {group.title}", "", "| case | verdict | why |", "|---|---|---|"]
        lines += [_row(case, judged[name][case]) for case in group.cases]
        lines.append("")
    lines.append(MOVING.read_text())
    return "\n".join(lines)


def _row(case: str, judgement: Judgement) -> str:
    why = " ".join(purpose.reason for purpose in judgement.purposes)
    if judgement.wrong:
        why = "; ".join(str(difference) for difference in judgement.wrong)
    return f"| {_cell(case)} | {judgement.verdict.value} | {_cell(why)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
