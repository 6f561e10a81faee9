"""The encoders of frames take any text and any object: what they write, the other side reads."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.handlers.hostile import exceptions, texts, values
from tests.handlers.samples import row
from tsctl.handlers import orders, wire
from tsctl.handlers.runtime.failures import failed, tell_failure
from tsctl.handlers.sdk.pending_metrics import PendingMetrics
from tsctl.handlers.texts.encodable import encodable, packed, sendable, text_of
from tsctl.handlers.worker import load_failure

few = settings(max_examples=30, deadline=None)


@few
@given(value=values)
def test_any_object_has_a_text_that_utf_8_can_encode(value: Any) -> None:
    assert type(text_of(value)) is str
    assert sendable(value).encode().decode() == sendable(value)


@few
@given(value=values)
def test_any_object_can_be_packed(value: Any) -> None:
    for packing in (value, [value], {"key": value}):
        msgspec.msgpack.decode(packed(packing))


@few
@given(text=st.text(max_size=20), number=st.integers(-(2**63), 2**64 - 1))
def test_a_message_that_can_be_encoded_is_encoded_as_it_is(text: str, number: int) -> None:
    message = [text, number, {text: None}, b"x", 0.5, True]

    assert encodable(message) == message


@few
@given(error=exceptions)
def test_any_exception_has_an_answer_a_traceback_and_a_report_that_the_daemon_reads(error: BaseException) -> None:
    answer, told = failed(row(b""), error), tell_failure(error, "/")
    done = wire.Done(1, [answer], 0.5, failures=[wire.HandlerFailure([0], told)])

    for message in (done, load_failure(error, "/")):
        decoded = wire.decode_for_daemon(wire.encode(message)[wire.LENGTH.size :])
        assert isinstance(decoded, type(message))


@few
@given(one=values, other=values, number=values)
def test_any_measurement_is_kept_in_a_form_that_the_daemon_reads_or_dropped(one: Any, other: Any, number: Any) -> None:
    tally = PendingMetrics()
    for kind in ("counter", "gauge", "histogram"):
        tally.add(kind, one, other, ((one, other),), number)

    wire.decode_for_daemon(wire.encode(wire.Done(1, [], 0.5, tally.take_measurements()))[wire.LENGTH.size :])


@few
@given(text=texts, member=values)
def test_the_daemon_sends_a_worker_any_text_of_a_client_and_any_manifest(text: str, member: Any) -> None:
    predict = wire.Predict(1, [wire.Row(text, [(text, text)], [(text, text, b"x")])])
    load = wire.Load(text, text, text, text, {text: member, "list": [member]}, 1, 1)

    for message in (predict, load):
        decoded = wire.decode_for_worker(wire.encode(message)[wire.LENGTH.size :])
        assert isinstance(decoded, type(message))
    assert isinstance(orders.decode_order(orders.encode(orders.Fork(1, text))), orders.Fork)


@pytest.mark.parametrize("depth", [99, 5_000, 100_000])
def test_a_manifest_of_any_depth_reaches_the_worker(depth: int) -> None:
    manifest: dict[str, Any] = {}
    for _ in range(depth):
        manifest = {"in": manifest}

    frame = wire.encode(wire.Load("m", "1.0", "/m", "h", manifest, 1, 1))

    assert isinstance(wire.decode_for_worker(frame[wire.LENGTH.size :]), wire.Load)
