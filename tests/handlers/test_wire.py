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


def test_frames_come_out_whole_and_in_order_wherever_the_stream_is_cut() -> None:
    sent = [b"", bytes(wire.encode(wire.Hello(1))[wire.LENGTH.size :]), b"", bytes(range(256)), b""]
    stream = b"".join(wire.LENGTH.pack(len(each)) + each for each in sent)

    for cut in range(len(stream)):
        assert frames_of([stream[:cut], stream[cut:]]) == sent
    assert frames_of([bytes([each]) for each in stream]) == sent
    assert frames_of([stream[:-1]]) == sent[:-1], "what lacks something is kept back"


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
