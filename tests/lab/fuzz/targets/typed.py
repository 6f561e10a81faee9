"""Rows of typed handlers (handlers/typed): a right answer or a named error for each, whatever the others are.

The first byte chooses the function; after it each row is `NAME;TYPE` LF VALUE, and a zero byte separates them.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from tests.handlers.typed.calls import runtime_of
from tests.lab.fuzz.targets import Target
from tsctl.handlers import wire

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


_RUNTIMES = [runtime_of(function) for function in _FUNCTIONS]


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


def _batch(which: int, *rows: bytes) -> bytes:
    return bytes([which]) + b"\0".join(rows)


_JSON = b"body;application/json\n"
TARGET = Target(
    check,
    [
        _batch(0, b"body;\nabc", b"data;text/plain; charset=utf-8\n\xc3\xa9", b"texts;\n\xff", _JSON + b'"a"'),
        _batch(0, _JSON + b'{"texts": "a"}', _JSON + b"[1]"),
        _batch(1, _JSON + b"[1, 2.5]", _JSON + b"[]", _JSON + b'["a"]', _JSON + b"[1,", _JSON + b"[1e999]"),
        _batch(2, _JSON + b'{"first": "a"}', _JSON + b'{"first": "a", "second": 4}'),
        _batch(2, b"first;\na", b"third;\na", _JSON + b"3"),
        _batch(3, _JSON + b'{"first": "YQ==", "second": null}', _JSON + b'{"first": "a", "second": 1}', _JSON + b"{}"),
        _batch(4, _JSON + b'{"answer": [1, null, "\xed\xa0\x80"]}', _JSON + b'{"answer": "\\ud800"}', _JSON + b"[]"),
        _batch(5, b"body;\n\xff\xfe", b"value;\n", b"other;\nx"),
    ],
    [_JSON, b"\0", b'{"first": ', b'"second": ', b"\\ud800", b"1e400", b"[[", b"null", b"data;"],
)
