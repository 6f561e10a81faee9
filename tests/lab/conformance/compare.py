"""Compare two answers: where they differ, and whether that is on purpose. Nothing here does I/O.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.lab.conformance.talk import Answer

RELATIVE = 1e-4
MISSING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs.

    Attributes:
        step: the index of the request.
        where: `status`, `reason`, `closed`, `body`, `header NAME`, or `body.PATH` in a JSON document.
        theirs, ours: the whole answers.
    """

    step: int
    where: str
    their_value: Any
    our_value: Any
    theirs: Answer
    ours: Answer

    def __str__(self) -> str:
        return f"step {self.step}: {self.where}: {_short(self.their_value)} there, {_short(self.our_value)} here"


class Verdict(Enum):
    SAME = "same"
    ON_PURPOSE = "different on purpose"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Purpose:
    """Something that differs on purpose.

    Attributes:
        reason: why, in one sentence.
        explains: whether a difference is of this kind.
        cases: the names of the only cases it may be used for; empty for all.
        always: every recording shows it; False for what is a race in TorchServe.
    """

    reason: str
    explains: Callable[[Difference], bool]
    cases: frozenset[str] = frozenset()
    always: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a case."""

    verdict: Verdict
    purposes: tuple[Purpose, ...] = ()
    wrong: tuple[Difference, ...] = ()


def judge(name: str, theirs: Sequence[Answer], ours: Sequence[Answer], purposes: Sequence[Purpose]) -> Judgement:
    """Judge one case: wrong as soon as one difference has no purpose."""
    found: dict[str, Purpose] = {}
    wrong = []
    for step, (their, our) in enumerate(zip(theirs, ours, strict=True), 1):
        for difference in differences(step, their, our):
            purpose = next((each for each in purposes if _fits(each, name, difference)), None)
            if purpose is None:
                wrong.append(difference)
            else:
                found[purpose.reason] = purpose
    if wrong:
        return Judgement(Verdict.WRONG, tuple(found.values()), tuple(wrong))
    return Judgement(Verdict.ON_PURPOSE if found else Verdict.SAME, tuple(found.values()))


def _fits(purpose: Purpose, name: str, difference: Difference) -> bool:
    return (not purpose.cases or name in purpose.cases) and purpose.explains(difference)


def differences(step: int, theirs: Answer, ours: Answer) -> Iterator[Difference]:
    """Yield the differences of two answers."""

    def found(where: str, their_value: Any, our_value: Any) -> Difference:
        return Difference(step, where, their_value, our_value, theirs, ours)

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
    for where, their_value, our_value in _bodies(theirs.body, ours.body):
        yield found(where, their_value, our_value)


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
    yield from _values("body", *documents)


def _values(where: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in dict.fromkeys((*theirs, *ours)):
            yield from _values(f"{where}.{key}", theirs.get(key, MISSING), ours.get(key, MISSING))
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, pair in enumerate(zip(theirs, ours, strict=True)):
            yield from _values(f"{where}.{index}", *pair)
    elif not _equal(theirs, ours):
        yield where, theirs, ours


def _equal(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, float) and isinstance(ours, float):
        both_nan = math.isnan(theirs) and math.isnan(ours)
        return both_nan or math.isclose(theirs, ours, rel_tol=RELATIVE, abs_tol=1e-9)
    return type(theirs) is type(ours) and bool(theirs == ours)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
