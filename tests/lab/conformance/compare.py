"""Compare two answers: where they differ, and whether that is on purpose (purposes.yaml).

What counts, and how:

    status          equal; 0 is a connection closed without an answer, -1 silence
    reason          equal, where a handler set one: an empty one says nothing (RFC 9112, section 4)
    headers         each of theirs is in ours with the same value, and the other way round; names without
                    regard to case; x-request-id by its form; hop-by-hop words as sent
    body            as bytes; if both are JSON, as values, numbers at 1e-4 relative
    closed          whether the connection was closed after the answer
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.lab.conformance.talk import Answer

RELATIVE = 1e-4
MISSING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs.

    Attributes:
        step: the index of the request.
        where: `status`, `reason`, `closed`, `body`, `header NAME`, or `body.PATH` in a JSON document.
        statuses: `THEIRS OURS`, of the whole answers.
    """

    step: int
    where: str
    their_value: Any
    our_value: Any
    statuses: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.where}: {self.their_value!r:.200} there, {self.our_value!r:.200} here"


class Verdict(Enum):
    SAME = "same"
    ON_PURPOSE = "different on purpose"
    WRONG = "wrong"


class Purpose(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that differs on purpose: a row of purposes.yaml, which says what its words mean."""

    why: str
    says: str = ".*"
    statuses: str = ".*"
    cases: frozenset[str] = frozenset()
    always: bool = True

    def explains(self, case: str, difference: Difference) -> bool:
        if self.cases and case not in self.cases:
            return False
        values = (json.dumps(each, ensure_ascii=False) for each in (difference.their_value, difference.our_value))
        line = f"{difference.where}: {' → '.join(values)}"
        return bool(re.fullmatch(self.says, line, re.DOTALL) and re.fullmatch(self.statuses, difference.statuses))


PURPOSES = msgspec.convert(
    yaml.safe_load(Path(__file__).with_name("purposes.yaml").read_text()), tuple[Purpose, ...]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a case: wrong as soon as one difference has no purpose."""

    purposes: tuple[Purpose, ...] = ()
    wrong: tuple[Difference, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return Verdict.WRONG if self.wrong else Verdict.ON_PURPOSE if self.purposes else Verdict.SAME


def judge(
    name: str, theirs: Sequence[Answer], ours: Sequence[Answer], purposes: Sequence[Purpose] = PURPOSES
) -> Judgement:
    """Judge one case."""
    found: dict[str, Purpose] = {}
    wrong = []
    for step, (their, our) in enumerate(zip(theirs, ours, strict=True), 1):
        for difference in differences(step, their, our):
            purpose = next((each for each in purposes if each.explains(name, difference)), None)
            if purpose is None:
                wrong.append(difference)
            else:
                found[purpose.why] = purpose
    return Judgement(tuple(found.values()), tuple(wrong))


def differences(step: int, theirs: Answer, ours: Answer) -> Iterator[Difference]:
    """Yield the differences of two answers."""

    def found(where: str, their_value: Any, our_value: Any) -> Difference:
        return Difference(step, where, their_value, our_value, f"{theirs.status} {ours.status}")

    if theirs.status != ours.status:
        yield found("status", theirs.status, ours.status)
    elif theirs.reason and theirs.reason != ours.reason:
        yield found("reason", theirs.reason, ours.reason)
    if theirs.closed != ours.closed:
        yield found("closed", theirs.closed, ours.closed)
    their_headers, our_headers = _headers(theirs), _headers(ours)
    for name in sorted(their_headers.keys() | our_headers.keys()):
        values = their_headers.get(name, MISSING), our_headers.get(name, MISSING)
        if values[0] != values[1]:
            yield found(f"header {name}", *values)
    yield from (found(*each) for each in _bodies(theirs.body, ours.body))


def _headers(answer: Answer) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers}


def _bodies(theirs: bytes, ours: bytes) -> Iterator[tuple[str, Any, Any]]:
    if theirs == ours:
        return
    try:
        documents = json.loads(theirs), json.loads(ours)
    except ValueError:
        yield "body", theirs.decode("latin-1"), ours.decode("latin-1")
        return
    yield from unequal_values("body", *documents)


def unequal_values(
    where: str, theirs: Any, ours: Any, relative: float = RELATIVE, absolute: float = 1e-9
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the places of two JSON documents that differ, with their values; floats may differ a little."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        pairs = {key: (theirs.get(key, MISSING), ours.get(key, MISSING)) for key in (*theirs, *ours)}
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = dict(enumerate(zip(theirs, ours, strict=True)))
    else:
        if isinstance(theirs, float) and isinstance(ours, float):
            both_nan = math.isnan(theirs) and math.isnan(ours)
            equal = both_nan or math.isclose(theirs, ours, rel_tol=relative, abs_tol=absolute)
        else:
            equal = type(theirs) is type(ours) and bool(theirs == ours)
        if not equal:
            yield where, theirs, ours
        return
    for key, pair in pairs.items():
        yield from unequal_values(f"{where}.{key}", *pair, relative, absolute)
