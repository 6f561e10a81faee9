"""The messages between two daemons, possibly of different versions."""

import socket

import msgspec
import pytest

from tsctl.daemon.__main__ import parse_arguments
from tsctl.daemon.lifecycle.upgrade.messages import (
    Bound,
    BrokenUpgradeMessage,
    Channel,
    Expected,
    FromNew,
    Inheritance,
    Progress,
    ReadyToTakeOver,
    TakenOver,
    TakeOver,
    TakeoverFailed,
    decode,
    decode_from_new,
    encode,
    within,
)
from tsctl.daemon.metrics.totals import Totals

INHERITANCE = Inheritance([Bound("--inference-address", "::1", 0, 7)], 8, 123, (9, 10), [Expected("m", "1.0", True, 3)])


# The bytes as daemons wrote them before their code moved to where it is. They stay: such daemons still run.
EARLIER = {
    b'{"endpoints":[{"flag":"--inference-address","host":"::1","port":0,"descriptor":7}],"control":8,"inode":123,'
    b'"locks":[9,10],"models":[{"name":"m","version":"1.0","must":true,"workers":3}],"stand_in":false,"form":1}\n': (
        INHERITANCE
    ),
    b'{"type":"yours"}\n': TakeOver(),
    b'{"type":"progress","done":1,"total":2}\n': Progress(1, 2),
    b'{"type":"loaded","version":"2.0"}\n': ReadyToTakeOver("2.0"),
    b'{"type":"taken"}\n': TakenOver(),
    b'{"type":"failed","reason":"no","details":"Traceback\\n  t"}\n': TakeoverFailed("no", "Traceback\n  t"),
}


@pytest.mark.parametrize("line", EARLIER, ids=lambda line: type(EARLIER[line]).__name__)
def test_an_earlier_daemon_is_understood_and_understands(line: bytes) -> None:
    word = EARLIER[line]

    assert (decode_from_new(line) if isinstance(word, FromNew) else decode(line, type(word))) == word
    assert encode(word) == line


def test_an_earlier_daemon_starts_this_one_by_the_arguments_that_it_knows() -> None:
    given = parse_arguments(["--max-sending-bytes=1MiB", "--background", "--inherit=5"])

    assert given.inherit == 5 and given.background


def test_what_another_version_says_beyond_what_we_know_is_ignored() -> None:
    said = msgspec.json.decode(encode(INHERITANCE)) | {"colour": "green"}

    assert decode(msgspec.json.encode(said), Inheritance) == INHERITANCE


def test_counts_beyond_what_a_message_may_hold_are_sent_after_it() -> None:
    counts = [Totals({"answers": {"2XX": number}}) for number in range(3)]
    two = sum(len(encode(each)) for each in counts[:2])

    assert within(counts, two) == (counts[:2], counts[2:])


@pytest.mark.parametrize("line", [b"", b"{", b"\xff", b'{"type": "sold"}', b"[]"])
def test_anything_else_is_broken(line: bytes) -> None:
    with pytest.raises(BrokenUpgradeMessage):
        decode_from_new(line)
    with pytest.raises(BrokenUpgradeMessage):
        decode(line, TakeOver)


class LastMoment(socket.socket):
    """A socket whose peer sends a line in the moment before this end is closed for it."""

    def shutdown(self, how: int) -> None:
        self.peer.sendall(encode(TakenOver()))
        super().shutdown(how)

    def __init__(self, ours: socket.socket, peer: socket.socket) -> None:
        super().__init__(fileno=ours.detach())
        self.peer = peer


async def test_a_line_that_was_sent_in_time_is_received_however_late_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(LastMoment(ours, theirs))

    with theirs:
        line = await channel.hear_within(0.0)
    channel.close()

    assert decode_from_new(line) == TakenOver()


async def test_the_channel_stays_open_after_a_line_that_came_in_time() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)

    with theirs:
        for number in range(2):
            theirs.sendall(encode(Progress(number, 2)))
            assert decode_from_new(await channel.hear_within(20.0)) == Progress(number, 2)
    channel.close()


async def test_after_the_time_for_a_line_none_can_be_sent() -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(ours)

    with theirs:
        with pytest.raises(TimeoutError):
            await channel.hear_within(0.0)

        with pytest.raises(BrokenPipeError):
            theirs.sendall(encode(TakenOver()))
    channel.close()
