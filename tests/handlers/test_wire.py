"""Frames survive the stream, however it is cut."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader

texts = st.text(st.characters(codec="utf-8"), max_size=20)
pairs = st.lists(st.tuples(texts, texts), max_size=3)
rows = st.builds(
    wire.Row, id=texts, headers=pairs, params=st.lists(st.tuples(texts, texts, st.binary(max_size=300)), max_size=3)
)
loads = st.builds(
    wire.Load,
    model_name=texts,
    model_version=texts,
    model_dir=texts,
    handler=texts,
    manifest=st.dictionaries(texts, st.none() | texts | st.integers(0, 9) | st.lists(texts, max_size=2), max_size=3),
    batch_size=st.integers(1, 512),
    threads=st.integers(1, 64),
    gpu_id=st.none() | st.integers(0, 7),
)
answers = st.builds(
    wire.Answer, status=st.integers(200, 599), body=st.binary(max_size=300), phrase=texts, headers=pairs, error=texts
)
seconds = st.floats(0, 1e6)
measured = st.lists(
    st.builds(
        wire.Measurement,
        kind=st.sampled_from(["counter", "gauge", "histogram"]), name=texts, unit=texts,
        labels=st.lists(st.tuples(texts, texts), max_size=2).map(tuple),
        value=st.floats(allow_nan=False), buckets=st.lists(st.integers(0, 2**40), max_size=3),
    ),
    max_size=2,
)  # fmt: skip
declarations = st.builds(
    wire.Declared,
    inputs=st.lists(
        st.builds(wire.Input, name=texts, kind=st.sampled_from(["text", "json", "image", "tensor"]), annotation=texts),
        max_size=3,
    ),
    batches=st.booleans(),
    batch_size=st.integers(0, 512),
    streams=st.booleans(),
    output=texts,
)
to_worker = st.one_of(
    loads,
    st.builds(wire.Predict, batch=st.integers(0, 2**63), rows=st.lists(rows, max_size=3)),
    st.builds(wire.Threads, count=st.integers(1, 64)),
)
to_daemon = st.one_of(
    st.builds(wire.Hello, pid=st.integers(1, 2**22)),
    st.builds(
        wire.Loaded,
        seconds=seconds,
        own_handle=st.booleans(),
        measured=measured,
        declared=st.none() | declarations,
        notes=st.lists(texts, max_size=2),
    ),
    st.builds(wire.LoadFailed, error=texts, traceback=texts, out_of_memory=st.booleans()),
    st.builds(
        wire.Done,
        batch=st.integers(0, 2**63),
        answers=st.lists(answers, max_size=3),
        seconds=seconds,
        measured=measured,
        isolation=st.none() | st.builds(wire.Isolation, failed=st.integers(0, 99), seconds=seconds),
        failures=st.lists(
            st.builds(wire.HandlerFailure, rows=st.lists(st.integers(0, 9)), traceback=texts), max_size=2
        ),
    ),
)


def in_pieces(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Cut a stream at these offsets; those beyond its end wrap around."""
    offsets = sorted({cut % (len(stream) + 1) for cut in cuts} | {0, len(stream)})
    return [stream[start:end] for start, end in pairwise(offsets)]


def frames_of(pieces: Iterable[bytes]) -> list[bytes]:
    reader = FrameReader()
    return [bytes(frame) for piece in pieces for frame in reader.feed(piece)]


def flat(messages: Sequence[wire.ToWorker]) -> list[wire.ToWorker]:
    """Make comparable: decoding gives views, which were bytes."""
    for message in messages:
        for each in message.rows if isinstance(message, wire.Predict) else ():
            each.params = [(name, kind, bytes(value)) for name, kind, value in each.params]
    return list(messages)


@settings(max_examples=40)
@given(messages=st.lists(to_worker, min_size=1, max_size=4), cuts=st.lists(st.integers(0, 4000), max_size=12))
def test_what_the_daemon_sends_survives_any_split_of_the_stream(messages: list[wire.ToWorker], cuts: list[int]) -> None:
    stream = b"".join(map(wire.encode, messages))

    received = [wire.decode_for_worker(frame) for frame in frames_of(in_pieces(stream, cuts))]

    assert flat(received) == messages


@settings(max_examples=40)
@given(messages=st.lists(to_daemon, min_size=1, max_size=4), cuts=st.lists(st.integers(0, 4000), max_size=12))
def test_what_a_worker_sends_survives_any_split_of_the_stream(messages: list[wire.ToDaemon], cuts: list[int]) -> None:
    stream = b"".join(map(wire.encode, messages))

    received = [wire.decode_for_daemon(frame) for frame in frames_of(in_pieces(stream, cuts))]

    assert received == messages


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
