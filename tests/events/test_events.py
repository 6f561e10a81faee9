"""Events rise in number, are bounded, are lines of the log at their level, and reach each reader."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tsctl.daemon.events.events import KEPT, KINDS, LEVELS, MOST_REQUESTS, MOST_TEXT, Event, Events, Journal, is_lost


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events]


def filled() -> Events:
    times = iter([10.0, 20.0, 30.0, 40.0])
    events = Events(wall=lambda: next(times))
    events.add("started", "begins")
    events.add("worker-exited", "ended", model="m", version="1.0", worker=7, requests=["a", "b"])
    events.add("requests-refused", "full", model="m", version="2.0")
    events.add("model-ready", "ready", model="other", version="1.0")
    return events


def test_an_event_has_the_level_of_its_kind_and_a_number_above_all_before() -> None:
    first, second, *_ = filled().after()

    assert first == Event(1, 10.0, "info", "started", "", "", 0, (), "begins")
    assert second == Event(2, 20.0, "error", "worker-exited", "m", "1.0", 7, ("a", "b"), "ended")
    with pytest.raises(KeyError):
        Events().add("something", "happened")


@pytest.mark.parametrize(
    ("told", "lost"),
    [
        pytest.param("", False, id="no daemon before"),
        pytest.param("registration-failed", False, id="one that could not start"),
        pytest.param("started scaled", True, id="one that was killed"),
        pytest.param("started stopping worker-exited", False, id="one that stopped"),
        pytest.param("started stopping started", True, id="the last one was killed"),
        pytest.param("started upgrade-started started upgraded stopping", False, id="the successor stopped"),
        pytest.param("started upgrade-started started upgraded", True, id="the successor was killed"),
        pytest.param("started" + " scaled" * KEPT, True, id="one that was killed, of whose start nothing is kept"),
        pytest.param("started" + " scaled" * KEPT + " stopping", False, id="one that stopped after as long a time"),
        pytest.param("started daemon-lost", False, id="one that was told of before, by one that could not start"),
    ],
)
def test_a_daemon_that_told_of_no_stop_was_lost(told: str, lost: bool) -> None:
    events = Events()
    for kind in told.split():
        events.add(kind, "")

    assert is_lost(events.after()) is lost


def test_only_the_latest_are_kept() -> None:
    events = Events(kept=3)

    for number in range(10):
        events.add("scaled", str(number))

    assert texts(events.after()) == ["7", "8", "9"]
    assert events.last == 10


def test_an_event_is_bounded_and_has_one_line_without_secrets() -> None:
    events = Events()

    events.add("registered", "from https://user:word@host/a.mar?sig=secret\nTraceback …", requests=["r"] * 1000)
    events.add("limit", "x" * 10_000)

    first, second = events.after()
    assert first.text == "from https://host/a.mar?…"
    assert len(first.requests) == MOST_REQUESTS and len(second.text) == MOST_TEXT


@pytest.mark.parametrize("kind", KINDS)
def test_each_event_is_one_line_of_the_log_at_its_level(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "tsctl.daemon"):
        Events().add(kind, "100 % is said", model="m", version="1.0", requests=["r1", "r2"])

    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (LEVELS[KINDS[kind].level], "m/1.0: 100 % is said (requests r1, r2)")
    ]


def test_a_reader_gets_each_event_after_it_is_found() -> None:
    events = Events()
    heard: list[tuple[str, int]] = []

    def listen(event: Event) -> None:
        heard.append((event.text, len(events.after())))

    def fail(event: Event) -> None:  # which ends neither the event nor other readers
        raise ValueError(event.text)

    events.readers |= {fail: None, listen: None}
    events.add("scaled", "one")
    del events.readers[listen]
    events.add("scaled", "two")

    assert heard == [("one", 1)]


@pytest.mark.parametrize(
    ("about", "line"),
    [
        pytest.param({}, "said of r1", id="of the daemon"),
        pytest.param({"model": "m"}, "m: said of r1", id="of a model whose version is not known"),
        pytest.param({"requests": ["r1", "r2"]}, "said of r1 (request r2)", id="a request that the text names"),
    ],
)
def test_a_line_names_what_the_event_is_about_once(about: dict[str, Any], line: str) -> None:
    events = Events()

    events.add("limit", "said of r1", **about)

    assert events.after()[0].line == line


def test_an_event_with_half_a_character_is_written_and_those_after_it_too(tmp_path: Path) -> None:
    events = Events(Journal(tmp_path / "events"))

    events.add("limit", "party \ud83c", model="m\udcff")
    events.add("limit", "after")

    assert [(event.model, event.text) for event in Events(Journal(tmp_path / "events")).after()] == [
        ("m\\udcff", "party \\ud83c"), ("", "after"),
    ]  # fmt: skip
