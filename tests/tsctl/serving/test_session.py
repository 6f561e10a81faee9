"""What a session asks of the daemon, from the first registration to the last unregistration."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import DaemonClient
from tsctl.daemon import paths
from tsctl.daemon.targets import read_target
from tsctl.errors import CliError
from tsctl.serving.session import Session, without_block

DONE = {"modelName": "h", "modelVersion": "1.0", "status": "done"}
FAILED = "Failed to start workers for model h version: 1.0: ValueError: no\n\nTraceback (most recent call last):\n"
FRAME = '  File "{file}", line 2, in <module>\n    raise ValueError("no")\nValueError: no'


class Watched:
    """A session that serves and watches `h.py`; `now` is its clock, in seconds."""

    def __init__(self, daemon: FakeDaemon, folder: Path) -> None:
        self.daemon = daemon
        self.file = folder / "h.py"
        self.file.write_text("def handle(data, context): ...\n")
        self.log = paths.model_log(folder / "state", "h", "1.0")
        self.log.parent.mkdir(parents=True)
        self.now = 0.0
        status = {"pid": os.getpid(), "stateDir": str(folder / "state")}
        options = {"batch_size": "4", "max_delay": None}
        self.session = Session(DaemonClient(daemon.path), status, "token", options, folder, watch=True)
        daemon.answer("POST /models", DONE)
        daemon.answer("DELETE /models/h/1.0", {"status": "done"})

    def serve(self) -> None:
        self.session.serve("h.py", read_target("h.py", self.file.parent))

    def save(self, source: str) -> None:
        """Save the file, and look twice: a change is due once it has settled."""
        self.file.write_text(source)
        for _ in range(2):
            self.now += 1.0
            self.session.turn(self.now)

    @property
    def registrations(self) -> list[dict[str, str]]:
        return [request.query for request in self.daemon.requests if request.method == "POST"]


@pytest.fixture
def watched(daemon: FakeDaemon, tmp_path: Path) -> Iterator[Watched]:
    (tmp_path / "own").mkdir()
    found = Watched(daemon, tmp_path / "own")
    yield found
    found.session.close(unregister=False)


def test_a_registration_is_for_a_while_and_has_an_owner(watched: Watched) -> None:
    watched.serve()

    (query,) = watched.registrations
    assert (query["ephemeral"], query["owner"], query["synchronous"]) == ("true", "token", "true")
    assert (query["url"], query["model_name"]) == (str(watched.file), "h")
    assert (query["batch_size"], query["fallback_batch_size"]) == ("4", "8")
    assert "replace" not in query and "max_delay" not in query


@pytest.mark.parametrize("unregister", [True, False], ids=["with a running daemon", "with one of our own"])
def test_at_the_end_only_its_own_models_are_unregistered(daemon: FakeDaemon, tmp_path: Path, unregister: bool) -> None:
    session = Watched(daemon, tmp_path)
    session.serve()

    session.session.close(unregister=unregister)

    deleted = [request for request in daemon.requests if request.method == "DELETE"]
    assert [(request.path, request.query) for request in deleted] == [
        ("/models/h/1.0", {"owner": "token"}),
    ] * unregister


def test_a_target_that_does_not_load_is_told_with_its_line(watched: Watched) -> None:
    watched.daemon.answer("POST /models", {"message": FAILED + FRAME.format(file=watched.file)}, 500)

    with pytest.raises(CliError) as caught:
        watched.serve()

    assert caught.value.message == "h.py, line 2: ValueError: no"
    assert watched.session.served == []


def test_a_saved_file_replaces_the_version_that_serves(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.serve()

    watched.save("def handle(data, context): return data\n")

    assert [query.get("replace") for query in watched.registrations] == [None, "true"]
    assert watched.registrations[1]["owner"] == "token"
    assert "replaced in 0.0" in capsys.readouterr().err


def test_a_file_that_nobody_saves_is_not_registered_again_and_what_it_prints_is_shown(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.serve()

    watched.log.write_text("hello\n")
    for now in range(10):
        watched.session.turn(float(now))

    assert len(watched.registrations) == 1
    assert capsys.readouterr().err.endswith("hello\n")


def test_a_syntax_error_is_not_sent_to_the_daemon(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    watched.serve()

    watched.save("def handle(\n")

    assert len(watched.registrations) == 1
    told = capsys.readouterr().err
    assert "h.py, line 1: SyntaxError: '(' was never closed" in told
    assert told.count("goes on serving") == 1


def test_a_traceback_is_shown_once_though_the_log_has_it_too(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.serve()
    trace = "Traceback (most recent call last):\n" + FRAME.format(file=watched.file)
    watched.daemon.answer("POST /models", {"message": FAILED + FRAME.format(file=watched.file)}, 500)
    watched.file.write_text("\nraise ValueError('no')\n")
    watched.session.turn(1.0)
    watched.log.write_text(f"printed by the old version\n{trace}\n")
    watched.session._replace(watched.session.served[0], watched.session.served[0].detector)  # type: ignore[arg-type]

    told = capsys.readouterr().err
    assert told.count("ValueError: no") == 1
    assert "printed by the old version\n" in told
    assert "h.py, line 2: ValueError: no" in told


def test_a_file_that_others_may_write_meanwhile_is_not_served(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.serve()
    watched.file.chmod(0o666)

    watched.save("import os\n")

    assert len(watched.registrations) == 1
    assert "`chmod go-w " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("block", "left"),
    [("b\nc", ["a", "d"]), ("b\nx", ["a", "b", "c", "d"]), ("", ["a", "b", "c", "d"]), ("a\nb\nc\nd", [])],
)
def test_a_traceback_that_was_shown_is_left_out(block: str, left: list[str]) -> None:
    assert without_block(["a", "b", "c", "d"], block) == left
