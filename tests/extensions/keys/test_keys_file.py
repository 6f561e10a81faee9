"""A keys file says who the clients are; a change of it counts a second later, unless it is invalid."""

import json
import os
from pathlib import Path

import pytest

from tests.kit.said import reason, said_in
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extensions.keys.known_clients import LOOK_EVERY, KnownClient, KnownClients, digest_of, read_clients

TABLE = '[[client]]\nname = "{name}"\nsha256 = "{digest}"\n'


def table(name: str, key: str, rights: str = "") -> str:
    return TABLE.format(name=name, digest=digest_of(key)) + rights


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "keys.toml"
    file.touch(mode=0o600)
    return file


@said_in("files.txt")
def test_a_client_has_what_its_table_says(given: str, file: Path) -> str:
    tables = [table(name, name, rights) for name, rights in json.loads(given).items()]
    file.write_text("".join(tables) or "client = []\n")
    return "\n".join(f"{client}" for client in read_clients(file).values())


@said_in("bad_files.txt")
def test_an_invalid_file_is_refused_with_the_place(given: str, file: Path) -> str:
    file.write_text(json.loads(given).replace("BRACKETS", "[" * 20_000))
    told = reason(lambda: read_clients(file), StartError).replace(str(file), "FILE")
    return told.partition(" while")[0]  # how deep Python was, and where, differs from version to version


def test_a_file_that_others_can_write_to_is_refused(file: Path) -> None:
    file.chmod(0o664)

    with pytest.raises(StartError, match=r"others can write to the keys file .* \(mode 0664\)"):
        read_clients(file)


def test_a_missing_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="cannot read the keys file") as refused:
        KnownClients(tmp_path / "none.toml", FakeClock())

    assert "tsctl key" in refused.value.hint


class Reading:
    """A keys file, read by a daemon whose clock the test moves."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.clock = FakeClock()
        self.events: list[tuple[str, str]] = []
        self.known = KnownClients(file, self.clock, lambda kind, text: self.events.append((kind, text)))
        self.known.begin()

    def write(self, text: str, *, seconds: float = LOOK_EVERY) -> None:
        draft = self.file.with_suffix(".draft")  # another inode: the clock of the file system may be coarse
        draft.write_text(text)
        draft.chmod(0o600)
        os.replace(draft, self.file)
        self.clock.advance(seconds)


def test_a_change_counts_after_a_second_and_keeps_the_rate_of_a_client(file: Path) -> None:
    file.write_text(table("a", "k", "rate = 1\n"))
    reading = Reading(file)
    first = reading.known.find("k")
    assert first is not None
    first.admit("m", 0, 0.0)

    reading.write(table("a", "k", "rate = 1\n") + table("b", "l"), seconds=LOOK_EVERY / 2)
    assert reading.known.find("l") is None
    reading.clock.advance(LOOK_EVERY / 2)

    assert reading.known.find("l") == KnownClient("b")
    again = reading.known.find("k")
    assert again is not None and again.due == first.due == 1.0
    assert reading.events == [("keys-read", f"`{file}` has changed: 2 clients")]


def test_a_revoked_key_is_not_known_any_more(file: Path) -> None:
    file.write_text(table("a", "k") + table("a", "l"))
    reading = Reading(file)

    reading.write(table("a", "l"))

    assert reading.known.find("k") is reading.known.find("\udcff") is None
    assert reading.known.names == ["a"]
    assert reading.events == [("keys-read", f"`{file}` has changed: 1 client")]


def test_an_invalid_change_is_told_once_and_without_a_request_and_the_clients_of_before_stay(file: Path) -> None:
    file.write_text(table("a", "k"))
    reading = Reading(file)

    reading.write("[[client", seconds=3 * LOOK_EVERY)

    [(kind, text)] = reading.events
    assert kind == "keys-invalid" and "is invalid" in text and text.endswith("the clients of before stay")
    file.unlink()
    reading.clock.advance(LOOK_EVERY)
    assert reading.known.find("k") == KnownClient("a")
    assert "cannot read the keys file" in reading.events[-1][1]


def test_a_file_to_which_others_may_write_from_now_on_is_told(file: Path) -> None:
    file.write_text(table("a", "k"))
    reading = Reading(file)

    file.chmod(0o666)
    reading.clock.advance(LOOK_EVERY)

    assert reading.known.find("k") == KnownClient("a")
    [(kind, text)] = reading.events
    assert kind == "keys-invalid" and "others can write to the keys file" in text
