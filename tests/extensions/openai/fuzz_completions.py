"""Requests of OpenAI's API (requests.py), in one go and walked in windows: read alike, or a named error."""

from tests.lab.fuzz.targets import Target
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.steps import finish
from tsctl.daemon.extensions.json_text.walk import read_members
from tsctl.daemon.extensions.openai.requests import MOST_MEMBERS, Asked, read_request


def check(data: bytes) -> object:
    seen = []
    for chat in (False, True):
        read = _read(data, chat)
        if isinstance(read, Asked):
            assert read.params[-1].name == "data"
            assert all(read.params[-1] is each or each.name != "data" for each in read.params)
        seen.append(read)
    _check_walked(data)
    return seen


def _read(data: bytes, chat: bool) -> Asked | str:
    try:
        return read_request(data, chat=chat)
    except BadRequest as error:
        assert len(str(error)) < 4000 + len(data)
        return str(error)


def _check_walked(data: bytes) -> None:
    """Check that a walk finds the members that msgspec finds, but for limits of its own."""
    try:
        walked, _ = finish(read_members(data, MOST_MEMBERS, at_once=0))
    except BadRequest:
        return
    decoded, _ = finish(read_members(data, MOST_MEMBERS, at_once=len(data)))
    assert {name: bytes(value) for name, value in walked.items()} == {
        name: bytes(value) for name, value in decoded.items()
    }


_CHAT = b'{"model": "m/1.0", "messages": [{"role": "user", "content": "a"}], "stream": true, "n": 1}'
TARGET = Target(
    check,
    [
        b'{"model": "m", "prompt": "Once", "max_tokens": 5, "stop": ["."]}',
        b'{"model": "m", "prompt": ["a"], "data": 1, "best_of": null}',
        _CHAT,
        _CHAT.replace(b'"a"', b'[{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}]'),
        _CHAT.replace(b'"a"', b"null"),
        _CHAT.replace(b'"a"', rb'"\ud83c\udf89 \u00e9"'),
    ],
    [b'"model": ', b'"messages": ', b'"content": ', b'"prompt": ', b'"type": "text"', b"\xff", b"[[[[", rb"\ud83c"],
)
