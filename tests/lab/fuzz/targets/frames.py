"""Frames (handlers/wire.py): the same messages however the stream is cut, and the same when they are written again."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.lab.fuzz.damage import cuts
from tests.lab.fuzz.targets import Target
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader

_ANSWER = wire.Answer(200, b"body", "OK", [("Content-Type", "text/plain")], "")
_MEASURED = [wire.Measurement("histogram", "ms", "ms", (("Level", "Host"),), 1.5, [0, 1])]
MESSAGES: list[Any] = [
    wire.Share(4096),
    wire.Load(
        "m", "1.0", "/m", "handler.py", {"model": {"modelName": "m", "extra": [1, None, 2.5]}}, 8, 2, 0, ["bf16"]
    ),
    wire.Predict(1, [wire.Row("id", [("a", "b")], [("body", "text/plain", b"x")])], [wire.Stored(0, 0, 0, 3)]),
    wire.Threads(4),
    wire.BatchSize(8),
    wire.Credit(1, 0, 4096),
    wire.Cancel(1),
    wire.NextCall(2, [1]),
    wire.Hello(7),
    wire.Loaded(
        0.5,
        True,
        _MEASURED,
        [wire.Optimized("bf16", True, 0.01, 1.0)],
        wire.Declared([wire.Input("text", "text", "list[str]")], True, 8, False, "list[str]"),
        ["passed over"],
    ),
    wire.LoadFailed("no", "Traceback", out_of_memory=True),
    wire.Started(1),
    wire.Chunk(1, [(0, _ANSWER)]),
    wire.Done(1, [_ANSWER], 0.25, _MEASURED, wire.Isolation(1, 0.1), [wire.HandlerFailure([0], "Traceback")]),
    wire.Cut(1, [0]),
    wire.Round([(1, _ANSWER)], [wire.Done(2, [_ANSWER], 0.25)], [3], [b"more"]),
    wire.MemberLost("rank 1 was killed", True),
    wire.GpuLost("its GPU context is broken"),
]


def check(data: bytes) -> object:
    whole = _frames([data])
    assert sum(len(frame) + wire.LENGTH.size for frame in whole) <= len(data)
    for pieces in cuts(data):
        assert _frames(pieces) == whole, pieces
    for frame in [*whole, data]:
        _decode(wire.decode_for_worker, frame)
        _decode(wire.decode_for_daemon, frame)
    return whole


def _frames(pieces: Iterable[bytes]) -> list[bytes]:
    reader = FrameReader()
    return [bytes(frame) for piece in pieces for frame in reader.feed(piece)]


def _decode(decode: Callable[[bytes], Any], frame: bytes) -> None:
    try:
        message = decode(frame)
    except wire.BrokenMessage:
        return
    written = wire.encode(message)
    assert wire.encode(decode(bytes(written[wire.LENGTH.size :]))) == written


TARGET = Target(check, [*(bytes(wire.encode(each)) for each in MESSAGES), b"".join(map(wire.encode, MESSAGES))])
