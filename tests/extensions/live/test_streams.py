"""The control socket streams the events; a slow client cannot make the stream grow."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.http.peer import Peer
from tsctl.daemon.extensions.live.counts import LiveService
from tsctl.daemon.extensions.live.streams import HEARTBEAT, LOOK_EVERY, MOST_STREAMS, MOST_UNREAD, EventStreams

STREAM = "Accept: text/event-stream"


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A daemon with events of two models, numbered from 1."""
    house = House(tmp_path)
    events = house.registrar.events
    events.add("started", "one")
    events.add("worker-exited", "two", model="m", version="1.0", worker=7, requests=["a"])
    events.add("scaled", "three", model="m", version="2.0")
    events.add("requests-refused", "four", model="other", version="1.0")
    return house


def follow(house: House, query: str = "", *headers: str) -> Peer:
    return house.send("GET", f"/tsctl/events{query}", b"", STREAM, *headers)


def streams_of(house: House) -> EventStreams:
    return house.service(LiveService).streams


def streamed(peer: Peer) -> list[dict[str, Any]]:
    """The events that a client of a stream has, by their `data`."""
    lines = bytes(peer.transport.written).split(b"\n")
    return [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")]


def test_a_stream_begins_with_what_was_and_goes_on_with_what_happens(house: House) -> None:
    peer = follow(house, "?model=m")

    house.registrar.events.add("scaled", "other", model="other", version="1.0")
    house.registrar.events.add("scaled", "five", model="m", version="1.0")

    written = bytes(peer.transport.written)
    assert written.startswith(b"HTTP/1.1 200")
    assert b"content-type: text/event-stream" in written.lower() and b"cache-control: no-cache" in written.lower()
    assert [event["text"] for event in streamed(peer)] == ["two", "three", "five"]
    assert b"id: 6\ndata: {" in written


def test_a_stream_goes_on_behind_the_last_event_of_the_one_before(house: House) -> None:
    assert [event["text"] for event in streamed(follow(house, "", "Last-Event-ID: 3"))] == ["four"]


def test_a_silent_stream_says_that_it_lives(house: House) -> None:
    peer = follow(house, "?limit=0")
    house.clock.advance(HEARTBEAT - 1)
    assert b"still here" not in peer.transport.written

    house.clock.advance(1.0)
    assert peer.transport.written.count(b": still here\n\n") == 1

    house.clock.advance(HEARTBEAT)
    assert peer.transport.written.count(b": still here\n\n") == 2


def test_a_client_that_does_not_read_is_cut_off(house: House) -> None:
    text, events = "x" * 1000, house.registrar.events
    for _ in range(100):
        events.add("scaled", text)
    peer = follow(house, "?limit=100")
    peer.connection.pause_writing()

    for _ in range(MOST_UNREAD // 1000 - 100):
        events.add("scaled", text)
    assert not peer.transport.aborted, "those that were there do not count"
    for _ in range(200):
        events.add("scaled", text)

    assert peer.transport.aborted
    assert events.readers == {} and repr(streams_of(house)) == "<EventStreams 0>"


@pytest.mark.parametrize("way", ["leave", "finish"])
def test_a_client_that_leaves_is_forgotten(house: House, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = follow(house)
    assert repr(streams_of(house)) == "<EventStreams 1>"

    getattr(peer, way)()

    assert house.registrar.events.readers == {} and repr(streams_of(house)) == "<EventStreams 0>"
    monkeypatch.setattr(house.registrar.events, "refresh", None)  # which nobody calls any more
    house.clock.advance(100.0)


def test_the_number_of_streams_is_bounded(house: House) -> None:
    peers = [follow(house) for _ in range(MOST_STREAMS + 1)]

    assert peers[0].transport.written.startswith(b"HTTP/1.1 200")
    (refused,) = peers[-1].answers
    assert refused.status == 503 and b"at most 64 may. Close one, and try again." in refused.body
    peers[0].leave()
    assert follow(house).transport.written.startswith(b"HTTP/1.1 200")


def test_streams_end_with_the_daemon_and_later_ones_end_at_once(house: House) -> None:
    peer = follow(house)

    asyncio.run(house.service(LiveService).settle(replaced=False))

    assert peer.answers[0].status == 200 and b"four" in peer.answers[0].body
    assert b"four" in follow(house).answers[0].body
    assert house.registrar.events.readers == {}


def test_an_exception_does_not_end_the_looks_into_the_file(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(house)
    looks = 0

    def refresh() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError

    monkeypatch.setattr(house.registrar.events, "refresh", refresh)
    with pytest.raises(RuntimeError):
        house.clock.advance(1.5 * LOOK_EVERY)
    house.clock.advance(3.0 * LOOK_EVERY)

    assert looks >= 3
