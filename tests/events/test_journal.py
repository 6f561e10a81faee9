"""The file keeps the events over restarts; two daemons write it during an upgrade, a full disk costs nothing else."""

import os
import resource
from pathlib import Path

import pytest

from tsctl.daemon.events.events import Events, Journal


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def kept(file: Path) -> list[tuple[int, str]]:
    """Return what a daemon that starts now finds."""
    events = Events(Journal(file))
    found = [(event.sequence, event.text) for event in events.after()]
    events.close()
    return found


def test_events_outlive_their_daemon_and_the_numbers_rise_on(file: Path) -> None:
    first = Events(Journal(file))
    first.add("started", "one", model="m", version="1.0", worker=3, requests=["a"])
    first.close()

    second = Events(Journal(file))
    second.add("started", "two")

    assert second.after()[0] == first.after()[0]
    assert kept(file) == [(1, "one"), (2, "two")]


def test_the_file_is_for_its_owner_only(file: Path) -> None:
    Events(Journal(file)).add("started", "one")

    assert all(path.stat().st_mode & 0o777 == 0o600 for path in file.parent.iterdir())


def test_two_daemons_number_their_events_together_and_know_all_of_them(file: Path) -> None:
    old, new = Events(Journal(file)), Events(Journal(file))
    heard: list[str] = []
    new.readers[lambda event: heard.append(event.text)] = None

    old.add("upgrade-started", "1 old")
    new.add("started", "2 new")
    old.add("upgraded", "3 old")

    expected = [(1, "1 old"), (2, "2 new"), (3, "3 old")]
    for events in (old, new):
        assert [(event.sequence, event.text) for event in events.after()] == expected
    assert kept(file) == expected
    assert heard == ["1 old", "2 new", "3 old"]


def test_a_full_file_is_renamed_and_both_daemons_go_on_in_the_new_one(file: Path) -> None:
    old, new = Events(Journal(file, most_bytes=1000)), Events(Journal(file, most_bytes=1000))

    for number in range(40):
        (old, new)[number % 3 == 0].add("scaled", f"{number}")

    assert [event.text for event in old.after()] == [event.text for event in new.after()] == list(map(str, range(40)))
    assert sum(path.stat().st_size for path in file.parent.iterdir()) <= 2000
    found = kept(file)
    assert len(found) > 5 and found == [(number + 1, str(number)) for number in range(40 - len(found), 40)]


def test_torn_and_foreign_lines_are_skipped(file: Path) -> None:
    events = Events(Journal(file))
    events.add("started", "one")
    events.close()
    with file.open("ab") as broken:
        broken.write(b'{"sequence": 2, "te\n\xff\xfe\n{"sequence": 2}\n[]\n')

    events = Events(Journal(file))
    events.add("started", "two")

    assert kept(file) == [(1, "one"), (2, "two")]


def test_numbers_rise_even_if_the_file_repeats_them(file: Path) -> None:
    events = Events(Journal(file))
    events.add("started", "one")
    file.write_bytes(file.read_bytes() * 3)

    assert [number for number, _ in kept(file)] == [1, 2, 3]


def test_what_the_disk_did_not_take_is_known_meanwhile_and_written_later(file: Path) -> None:
    events = Events(Journal(file))
    events.add("started", "one")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 20, before[1]))  # a part of a line fits
    try:
        events.add("scaled", "two")
        events.add("scaled", "four")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    three = f"cannot write `{file}`: File too large; events are kept in memory until it can be written"
    assert [event.text for event in events.after()] == ["one", "two", three, "four"]
    assert kept(file) == [(1, "one")]

    events.add("scaled", "five")
    assert kept(file) == [(1, "one"), (2, "two"), (3, three), (4, "four"), (5, "five")]


def test_a_daemon_without_a_place_for_the_file_still_has_its_events(tmp_path: Path) -> None:
    events = Events(Journal(tmp_path / "missing" / "events.jsonl"))

    events.add("started", "one")

    assert [event.kind for event in events.after()] == ["started", "log-lost"]


def test_no_file_stays_open_after_the_close(file: Path) -> None:
    before = os.listdir("/proc/self/fd")

    events = Events(Journal(file))
    events.add("started", "one")
    events.close()

    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(("most", "expected"), [(3, ["7", "8", "9"]), (8, list("23456789"))])
def test_a_daemon_reads_as_many_of_both_files_as_it_keeps(file: Path, most: int, expected: list[str]) -> None:
    events = Events(Journal(file, most_bytes=700))
    for number in range(10):
        events.add("scaled", str(number))
    events.close()
    assert 3 <= len(file.read_bytes().splitlines()) < 8

    assert [event.text for event in Events(Journal(file), kept=most).after()] == expected
