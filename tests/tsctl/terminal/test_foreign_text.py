"""Texts of handlers, clients and files never reach a terminal with what it would obey, whichever verb shows them."""

import ast
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.said import said_in
from tests.tsctl.documents import DESCRIBED, model
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.test_events_command import DIED
from tests.tsctl.transcripts import loaded
from tsctl import render
from tsctl.cli import main
from tsctl.streams import shown, write

ROOT = Path(__file__).parents[3]
# The window's title, a colour, the screen, its end in C1, Unicode's directions, a line that overwrites, half an emoji.
HOSTILE = "\x1b]0;owned\x07\x1b[8mhid\x1b[2J\x9b2J\x85\u202egnp\u2066x\rover\x00\x7f[red]\ud83c"
# A colour of our own, and what `rich` writes around its live line.
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[[0-9]*[AKG]|\r")
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
WORDS = frozenset(
    {"state", "level", "policy", "kind", "workers", "time", "since", "verdict", "condition", "name", "origin"}
)  # of the daemon's own vocabulary, by which the command line chooses words


class Tty(io.TextIOWrapper):
    """A terminal: keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def seen(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


def as_terminal(monkeypatch: pytest.MonkeyPatch) -> Tty:
    """Put a terminal in the place of stdout and stderr; not as a fixture, after which pytest puts its own there."""
    made = Tty()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", made)
    monkeypatch.setattr(sys, "stderr", made)
    return made


def hostile(document: Any, key: str = "") -> Any:
    """Return a document of the daemon in which every text but its own vocabulary was chosen by an attacker."""
    if isinstance(document, dict):
        return {name: hostile(each, name) for name, each in document.items()}
    if isinstance(document, list):
        return [hostile(each, key) for each in document]
    return document + HOSTILE if isinstance(document, str) and key not in WORDS else document


def harmless(text: str) -> bool:
    return UNSAFE.search(OURS.sub("", text)) is None and "\x1b[8m" not in text and "\rover" not in text


STATUS = {
    "pid": 77, "version": "0.1.0", "python": "/usr/bin/python3", "prefix": "/usr", "pythonVersion": "3.12",
    "started": 0, "upSeconds": 0.0, "inferenceAddress": "http://127.0.0.1:8080", "socket": "/run/control.sock",
    "modelStore": "/store", "stateDir": "/state", "models": [model("net", "1.0")],
}  # fmt: skip
SAID = {"status": "Registered", "modelName": "net", "modelVersion": "1.0", "warning": "beware", "error": "e"}


@pytest.mark.parametrize(
    ("arguments", "line", "document"),
    [
        (["ls"], "GET /tsctl/status", STATUS),
        (["describe", "net"], "GET /models/net", [DESCRIBED]),
        (["events"], "GET /tsctl/events", {"events": [DIED, DIED | {"requests": ["r1", "r2"]}]}),
        (["default", "net/2"], "PUT /models/net/2/set-default", SAID),
        (["unregister", "net"], "DELETE /models/net", SAID),
        (["register", "net.mar", "--no-wait"], "POST /models", loaded("registered") | SAID),
        (["status"], "GET /tsctl/status", STATUS),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and isinstance(value[0], str) else "",
)
def test_no_verb_writes_foreign_control_characters_to_a_terminal(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch, arguments: list[str], line: str, document: Any
) -> None:
    tty = as_terminal(monkeypatch)
    if line == "POST /models":  # as a terminal gets the progress
        done = {"stage": "done", "status": 200, "document": hostile(document)}
        daemon.answer_body(line, json.dumps(done).encode() + b"\n", "application/x-ndjson")
    else:
        daemon.answer(line, hostile(document))

    with pytest.raises(SystemExit):
        main(arguments, prog_name="tsctl")

    assert "hid" in tty.seen, tty.seen
    assert harmless(tty.seen), tty.seen


def test_an_answer_is_text_on_a_terminal_and_the_same_bytes_in_a_file(
    daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tty = as_terminal(monkeypatch)
    answer = HOSTILE.encode("utf-8", "surrogatepass") + b"\xff\xc3\r\n"
    daemon.answer_body("POST /predictions/net", answer, "text/plain")
    with pytest.raises(SystemExit):
        main(["predict", "net", "--data", "x"], prog_name="tsctl")
    with (tmp_path / "answer").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        write([answer[:5], answer[5:]])

    assert "hid" in tty.seen and harmless(tty.seen), tty.seen
    assert (tmp_path / "answer").read_bytes() == answer


def test_a_character_in_two_pieces_is_one_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    tty = as_terminal(monkeypatch)
    write(["→".encode()[:1], "→".encode()[1:]])

    assert tty.seen == "→\n"


def test_logs_are_safe_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tty = as_terminal(monkeypatch)
    log = tmp_path / "logs" / "daemon.log"
    log.parent.mkdir()
    log.write_bytes(HOSTILE.encode("utf-8", "surrogatepass") + b"\n")

    with pytest.raises(SystemExit):
        main(["logs", "--daemon", "--state-dir", str(tmp_path)], prog_name="tsctl")

    assert "hid" in tty.seen and harmless(tty.seen), tty.seen


def test_brackets_are_no_markup_and_other_consoles_are_safe_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tty = as_terminal(monkeypatch)
    for write_line in (render.heading, render.plain, render.note, lambda text: render.hanging(text, 4), render.cut):
        write_line(HOSTILE)
    render.table(["A", HOSTILE], [[HOSTILE, "x"]])
    render.facts([(HOSTILE, HOSTILE)])
    render.verdicts([(HOSTILE, HOSTILE, HOSTILE, HOSTILE)])
    render.histogram([(HOSTILE, 1)], [HOSTILE])
    with render.live() as progress:
        progress.show(HOSTILE)
        progress.print(HOSTILE)

    assert tty.seen.count("[red]") >= 10 and harmless(tty.seen), tty.seen


@said_in("shown.txt")
def test_shown(given: str) -> str:
    return json.dumps(shown(json.loads(given)))


def test_no_unicode_control_of_direction_is_shown() -> None:
    safe = shown("".join(map(chr, range(0x110000))))

    assert all(each in "\n\t" or each.isprintable() or ord(each) > 0x9F for each in safe)
    assert not set(safe) & set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


# Programs whose output is a pipe to another one of ours, the client for Python, and the writers themselves.
_APART = (
    "tsctl/python/",
    "tsctl/container/",
    "tsctl/templates/",
    "tsctl/loadgen/__main__.py",
    "tsctl/streams.py",
)
_WRITERS = re.compile(r"(click\.(s?echo|secho|echo_via_pager)|print|sys\.(stdout|stderr)(\.buffer)?\.write|os\.write)$")


def test_every_output_goes_through_the_one_way() -> None:
    found = []
    for path in (ROOT / "tsctl").rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(_APART):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _WRITERS.match(ast.unparse(node.func)):
                found.append(f"{name}: {ast.unparse(node.func)}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "Console",
                "Text.from_markup",
                "Text.from_ansi",
            ):
                found.append(f"{name}: {ast.unparse(node.func)}")

    rows = (
        "tsctl/extensions/live/poller.py: os.write",  # a pipe to itself
        "tsctl/extensions/live/terminal.py: os.write",
        "tsctl/extensions/live/terminal.py: sys.stdout.write",  # what render.out has made
    )
    assert sorted(found) == [row for row in rows if (ROOT / row.partition(":")[0]).exists()]
