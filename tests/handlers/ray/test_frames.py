"""Kinds and order of frames on their way through actors."""

import random

import msgspec
import pytest

from tsctl.handlers import wire
from tsctl.handlers.ray.frames import DONE, LOAD, PREDICT, FrameOrder, batch_of, tag_of

LOADED = wire.Load("m", "1.0", "/m", "h.py", {}, 1, 1)
MESSAGES = [
    pytest.param(LOADED, LOAD, id="Load, a long array"),
    pytest.param(wire.Predict(7, []), PREDICT, id="Predict"),
    pytest.param(wire.Done(7, [], 0.5), DONE, id="Done"),
    pytest.param(wire.Threads(2), 3, id="Threads"),
    pytest.param(wire.Chunk(7, []), 5, id="Chunk"),
    pytest.param(wire.Credit(7, 0, 1), 6, id="Credit"),
]


def frame_of(message: wire.ToWorker | wire.ToDaemon) -> bytes:
    return bytes(wire.encode(message)[wire.LENGTH.size :])


@pytest.mark.parametrize(("message", "tag"), MESSAGES)
def test_the_kind_of_a_frame_is_known_without_decoding_it(message: wire.ToWorker | wire.ToDaemon, tag: int) -> None:
    assert tag_of(frame_of(message)) == tag


@pytest.mark.parametrize("frame", [b"", b"\x93", b"\xdc\x00\x01"])
def test_a_frame_without_a_kind_is_none(frame: bytes) -> None:
    assert tag_of(frame) == 0


def test_batches_have_their_numbers() -> None:
    assert batch_of(frame_of(wire.Predict(2**40, []))) == 2**40
    assert batch_of(frame_of(wire.Done(3, [], 0.5))) == 3
    with pytest.raises(msgspec.DecodeError):
        batch_of(frame_of(wire.Threads(2)))


def test_frames_come_out_in_the_order_of_their_numbers_whatever_overtook_them() -> None:
    frames = [(number, b"%d" % number) for number in range(100)]
    random.Random(1).shuffle(frames)
    order = FrameOrder()

    found = [frame for each in frames for frame in order.take_frame(*each)]

    assert found == [b"%d" % number for number in range(100)]
    assert list(order.take_frame(101, b"early")) == []
