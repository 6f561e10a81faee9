"""Frames (handlers/wire.py) on their way through actors: their kinds, and their order.

Calls of an actor may overtake each other, and so may their results: frames are numbered in each direction.
"""

from collections.abc import Callable, Iterator

import msgspec

from tsctl.handlers.wire import Frame

LOAD, PREDICT, DONE = 1, 2, 4  # tags
_LONG_ARRAY = 0xDC  # msgpack: two bytes of length follow; an array of up to 15 members begins with one byte


def tag_of(frame: Frame) -> int:
    """Return the tag of a message; 0 if there is none."""
    at = 3 if frame and frame[0] == _LONG_ARRAY else 1
    return int(frame[at]) if len(frame) > at else 0


class _PredictHead(msgspec.Struct, array_like=True, tag=PREDICT):
    """The beginning of a Predict; msgspec passes over the rest."""

    batch: int


class _DoneHead(msgspec.Struct, array_like=True, tag=DONE):
    batch: int


_decode: Callable[[Frame], _PredictHead | _DoneHead] = msgspec.msgpack.Decoder(_PredictHead | _DoneHead).decode


def batch_of(frame: Frame) -> int:
    """Return the batch of a Predict or a Done.

    Raises:
        msgspec.DecodeError: the message is neither.
    """
    return _decode(frame).batch


class FrameOrder:
    """Returns numbered frames in the order of their numbers, which begin at 0 and have no gaps."""

    def __init__(self) -> None:
        self._next = 0
        self._early: dict[int, bytes] = {}

    def take_frame(self, number: int, frame: bytes) -> Iterator[bytes]:
        """Take a frame; yield it, and those that waited for it, if none before it is missing."""
        self._early[number] = frame
        while self._next in self._early:
            yield self._early.pop(self._next)
            self._next += 1
