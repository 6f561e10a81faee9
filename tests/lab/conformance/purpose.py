"""Intended differences, with reasons: purposes.yaml is the table, here are its rules, which look at both answers."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.lab.conformance.compare import MISSING, Difference, Purpose

TABLE = Path(__file__).with_name("purposes.yaml")
Rule = Callable[[Difference], bool]


def stands(*pairs: tuple[int, int]) -> Rule:
    """These statuses, theirs and ours; the answers are of different kinds, so all of them may differ."""
    return lambda difference: (difference.theirs.status, difference.ours.status) in pairs


def says(line: str, statuses: str) -> Rule:
    """Just these values, in JSON; of answers with these statuses."""
    expected, between = re.compile(line, re.DOTALL), re.compile(statuses)

    def explains(difference: Difference) -> bool:
        theirs, ours = (json.dumps(each, ensure_ascii=False) for each in (difference.their_value, difference.our_value))
        return (
            expected.fullmatch(f"{difference.where}: {theirs} → {ours}") is not None
            and between.fullmatch(f"{difference.theirs.status} {difference.ours.status}") is not None
        )

    return explains


def oip_error(difference: Difference) -> bool:
    """The member `error` of an error's document, with the text of `message`."""
    if difference.where != "body.error" or difference.their_value != MISSING:
        return False
    return bool(difference.our_value == json.loads(difference.ours.body)["message"])


def no_token(difference: Difference) -> bool:
    answers = difference.theirs, difference.ours
    return all(b"InvalidKeyException" in answer.body for answer in answers) and stands((400, 401), (400, 403))(
        difference
    )


def _rule(row: dict[str, Any]) -> Rule:
    if "stands" in row:
        return stands(*((theirs, ours) for theirs, ours in row["stands"]))
    if "says" in row:
        return says(row["says"], row.get("statuses", ".*"))
    rule: Rule = globals()[row["rule"]]
    return rule


PURPOSES = tuple(
    Purpose(row["why"], _rule(row), frozenset(row.get("cases", ())), row.get("always", True))
    for row in yaml.safe_load(TABLE.read_text())
)
