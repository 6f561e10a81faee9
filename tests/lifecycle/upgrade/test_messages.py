"""The messages between two daemons, possibly of different versions."""

import msgspec
import pytest

from daemon.lifecycle.upgrade.messages import (
    Bound,
    BrokenWord,
    Expected,
    Failed,
    FromNew,
    Inheritance,
    Loaded,
    Progress,
    Taken,
    Yours,
    decode,
    decode_from_new,
    encode,
)

INHERITANCE = Inheritance([Bound("--inference-address", "::1", 0, 7)], 8, 123, (9, 10), [Expected("m", "1.0", True, 3)])


@pytest.mark.parametrize("word", [Progress(1, 2), Loaded("2.0"), Taken(), Failed("no", "Traceback\n  …")])
def test_a_word_of_the_new_daemon_arrives_as_it_was_said(word: FromNew) -> None:
    line = encode(word)

    assert line.count(b"\n") == 1
    assert decode_from_new(line) == word


def test_a_word_of_the_old_daemon_arrives_as_it_was_said() -> None:
    assert decode(encode(INHERITANCE), Inheritance) == INHERITANCE
    assert decode(encode(Yours()), Yours) == Yours()


def test_what_another_version_says_beyond_what_we_know_is_ignored() -> None:
    said = msgspec.json.decode(encode(INHERITANCE)) | {"colour": "green"}

    assert decode(msgspec.json.encode(said), Inheritance) == INHERITANCE


@pytest.mark.parametrize("line", [b"", b"{", b"\xff", b'{"type": "sold"}', b"[]"])
def test_anything_else_is_broken(line: bytes) -> None:
    with pytest.raises(BrokenWord):
        decode_from_new(line)
    with pytest.raises(BrokenWord):
        decode(line, Yours)
