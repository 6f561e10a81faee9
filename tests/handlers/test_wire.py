"""Messages and their frames; how a stream may be cut is tried in tests/lab/fuzz/targets/frames.py."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from tests.lab.fuzz.targets.frames import MESSAGES
from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader


def frames_of(pieces: Iterable[bytes]) -> list[bytes]:
    reader = FrameReader()
    return [bytes(frame) for piece in pieces for frame in reader.feed(piece)]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_read_as_it_was_written(message: Any) -> None:
    decode = wire.decode_for_worker if isinstance(message, wire.ToWorker) else wire.decode_for_daemon

    assert frames_of([bytes(wire.encode(message))]) == [wire.encode(message)[wire.LENGTH.size :]]
    assert decode(wire.encode(message)[wire.LENGTH.size :]) == message


def test_several_frames_in_one_chunk_come_out_in_order() -> None:
    chunk = b"".join(wire.encode(wire.Hello(pid)) for pid in (1, 2, 3))

    received = [wire.decode_for_daemon(frame) for frame in frames_of([chunk])]

    assert received == [wire.Hello(1), wire.Hello(2), wire.Hello(3)]


def test_a_frame_and_the_start_of_the_next_in_one_chunk() -> None:
    first, second = wire.encode(wire.Hello(1)), wire.encode(wire.Hello(2))
    reader = FrameReader()

    early = list(reader.feed(bytes(first + second[:3])))
    late = list(reader.feed(bytes(second[3:])))

    assert [wire.decode_for_daemon(frame) for frame in early] == [wire.Hello(1)]
    assert [wire.decode_for_daemon(frame) for frame in late] == [wire.Hello(2)]


@pytest.mark.parametrize("missing", [1, 5], ids=["its last byte", "most of its head"])
def test_a_frame_that_lacks_something_is_kept_back(missing: int) -> None:
    frame = wire.encode(wire.Loaded(0.5, own_handle=True))

    received = frames_of([bytes(frame[:-missing])])

    assert received == []


class OldLoaded(msgspec.Struct, array_like=True, tag=2):
    """`wire.Loaded` before handlers declared their inputs."""

    seconds: float
    own_handle: bool
    measured: list[wire.Measurement] = []
    optimized: list[wire.Optimized] = []


def test_an_older_worker_declares_nothing() -> None:
    received = wire.decode_for_daemon(msgspec.msgpack.encode(OldLoaded(0.5, own_handle=True)))

    assert received == wire.Loaded(0.5, own_handle=True)
    assert isinstance(received, wire.Loaded)
    assert (received.declared, received.notes) == (None, [])


def test_an_older_daemon_reads_what_a_typed_handler_says_first() -> None:
    declared = wire.Declared([wire.Input("text", "text", "list[str]")], batches=True)
    message = wire.encode(wire.Loaded(0.5, own_handle=True, declared=declared, notes=["passed over"]))

    received = msgspec.msgpack.decode(message[wire.LENGTH.size :], type=OldLoaded)

    assert received == OldLoaded(0.5, own_handle=True)


@pytest.mark.parametrize(
    "declared",
    [
        pytest.param([[["x", "pickle", ""]], True], id="a kind that there is not"),
        pytest.param([[["x" * 1001, "text", ""]], True], id="a name without end"),
        pytest.param([[["x", "text", ""]] * 101, True], id="inputs without end"),
        pytest.param([[["x", "text", ""]], True, -1], id="a negative batch size"),
    ],
)
def test_the_daemon_rejects_a_declaration_with(declared: list[object]) -> None:
    with pytest.raises(wire.BrokenMessage):
        wire.decode_for_daemon(msgspec.msgpack.encode([2, 0.5, True, [], [], declared]))


def test_an_empty_message_is_a_frame_of_its_own() -> None:
    empty = wire.LENGTH.pack(0)

    received = frames_of([empty + empty + empty[:2], empty[2:]])

    assert received == [b"", b"", b""]


def test_the_length_counts_the_message_and_not_itself() -> None:
    frame = wire.encode(wire.Hello(4711))

    assert wire.LENGTH.unpack_from(frame)[0] == len(frame) - wire.LENGTH.size


def test_a_payload_arrives_as_a_view_into_its_frame() -> None:
    frame = wire.encode(wire.Predict(1, [wire.Row("r", [], [("body", "", b"payload")])]))

    (message,) = (wire.decode_for_worker(each) for each in frames_of([bytes(frame)]))

    assert isinstance(message, wire.Predict)
    value = message.rows[0].params[0][2]
    assert isinstance(value, memoryview)
    assert bytes(value) == b"payload"


def test_a_message_that_does_not_fit_the_length_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME", 100)

    with pytest.raises(wire.FrameTooLarge, match=r"a message of \d+ bytes does not fit a frame"):
        wire.encode(wire.LoadFailed("", "x" * 101))
