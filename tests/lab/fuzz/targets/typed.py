"""Rows of typed handlers (handlers/typed): a right answer or a named error for each, whatever the others are.

The first byte chooses the function; after it each row is `NAME;TYPE` LF VALUE, and a zero byte separates them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from handlers import wire
from handlers.runtime.runtime import Runtime
from handlers.typed.entry import typed_entry
from tests.handlers.samples import context_of
from tests.lab.fuzz.target import Target

_MOST_ROWS = 8


def texts(texts: list[str]) -> list[str]:
    return texts


def sums(rows: list[list[float]]) -> list[float]:
    return [sum(row) for row in rows]


def pair(first: str, second: int = 3) -> dict[str, Any]:
    return {"first": first, "second": second}


def pairs(first: list[bytes], second: list[int | None]) -> list[dict[str, Any]]:
    return [{"size": len(one), "second": two} for one, two in zip(first, second, strict=True)]


def document(value: dict[str, Any]) -> Any:
    return value.get("answer", value)


def kept(value: bytes) -> bytes:
    return value


_FUNCTIONS: tuple[Callable[..., Any], ...] = (texts, sums, pair, pairs, document, kept)


def _runtime_of(function: Callable[..., Any]) -> Runtime:
    entry = typed_entry(function)
    assert entry is not None
    return Runtime(entry, context_of(Path("/nowhere")))


_RUNTIMES = [_runtime_of(function) for function in _FUNCTIONS]


def check(data: bytes) -> object:
    which = data[0] % len(_FUNCTIONS) if data else 0
    rows = [_row(number, piece) for number, piece in enumerate(data[1:].split(b"\0")[:_MOST_ROWS])]
    answers = _RUNTIMES[which].run(rows)

    assert len(answers) == len(rows)
    for row, answer in zip(rows, answers, strict=True):
        assert answer.status in (200, 400), answer
        assert bool(answer.error) is (answer.status == 400)
        if answer.status == 400:
            assert answer.body.endswith(f"(Request {row.id})".encode()), answer
        elif ("Content-Type", "application/json") in answer.headers:
            msgspec.json.decode(answer.body)
        if _FUNCTIONS[which] is kept and answer.status == 200:
            assert answer.body == row.params[0][2]
    alone = [_RUNTIMES[which].run([row])[0] for row in rows]
    assert alone == answers, "a row's answer depends on the others"
    return answers


def _row(number: int, piece: bytes) -> wire.Row:
    head, _, value = piece.partition(b"\n")
    name, _, kind = head.decode("latin-1").partition(";")
    return wire.Row(f"r{number}", [], [(name or "body", kind, memoryview(value))])


_JSON = b"body;application/json\n"
TARGET = Target(
    check,
    [
        b'\0body;\nabc\0data;text/plain; charset=utf-8\n\xc3\xa9\0texts;\n\xff\0body;application/json\n"a"',
        b"\0" + _JSON + b'{"texts": "a"}\0' + _JSON + b"[1]\0",
        b"\1" + _JSON + b"[1, 2.5]\0" + _JSON + b"[]\0" + _JSON + b'["a"]\0' + _JSON + b"[1,\0" + _JSON + b"[1e999]",
        b"\2"
        + _JSON
        + b'{"first": "a"}\0'
        + _JSON
        + b'{"first": "a", "second": 4}\0first;\na\0third;\na\0'
        + _JSON
        + b"3",
        b"\3"
        + _JSON
        + b'{"first": "YQ==", "second": null}\0'
        + _JSON
        + b'{"first": "a", "second": 1}\0'
        + _JSON
        + b"{}",
        b"\4" + _JSON + b'{"answer": [1, null, "\xed\xa0\x80"]}\0' + _JSON + b'{"answer": "\\ud800"}\0' + _JSON + b"[]",
        b"\5body;\n\xff\xfe\0value;\n\0other;\nx",
    ],
    [_JSON, b"\0", b'{"first": ', b'"second": ', b"\\ud800", b"1e400", b"[[", b"null", b"data;"],
)
