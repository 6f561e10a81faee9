"""TAB: the scripts that are shipped, and what they find."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import CompletionItem
from click.testing import CliRunner

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.cli import all_verbs, main
from tsctl.completion import SHELLS, complete_archive, complete_model

ROOT = Path(__file__).parents[2]
MODELS: list[dict[str, Any]] = [
    {"name": "resnet", "version": "2.0", "state": "ready", "default": True},
    {"name": "resnet", "version": "1.0", "state": "failed", "default": False},
    {"name": "mnist", "version": "1.0", "state": "ready", "default": True},
]
STORE = [{"name": "resnet.mar", "bytes": 230 * 2**20}, {"name": "mnist", "bytes": None}]


def tab(line: str) -> list[str]:
    """Press TAB at the end of a line, as the bash script does."""
    words = line.split(" ")
    environment = {
        "_TSCTL_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    result = CliRunner().invoke(main, prog_name="tsctl", env=environment)
    assert result.stderr == ""
    return [found.removeprefix("plain,") for found in result.stdout.splitlines()]


def context_of(socket: Path | None = None) -> click.Context:
    """The context of a verb, as click makes one while completing."""
    root = click.Context(main, resilient_parsing=True)
    root.params = {"socket": socket}
    return click.Context(click.Command("describe"), parent=root, resilient_parsing=True)


def words(items: list[CompletionItem]) -> list[str]:
    return [item.value for item in items]


PARAMETER = click.Argument(["model"])


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_that_is_shipped_is_fresh(invoke: Invoke, shell: str) -> None:
    result = invoke("completion", shell)  # asserts that click's script is changed in one place

    assert result.exit_code == 0
    assert result.stdout == (ROOT / "completions" / f"tsctl.{shell}").read_text(), "`python -m tests.lab completions`"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tsctl ", list(all_verbs())),
        ("tsctl st", ["start", "stop", "status"]),
        ("tsctl scale --m", ["--max-workers"]),
        ("tsctl describe ", ["resnet", "mnist"]),
        ("tsctl scale res", ["resnet"]),
        ("tsctl default resnet/", ["resnet/2.0", "resnet/1.0"]),
        ("tsctl default resnet/1", ["resnet/1.0"]),
        ("tsctl start --model-store mo", ["dir,mo"]),
        ("tsctl start --ts-config co", ["file,co"]),
        ("tsctl archive --handler ha", ["file,ha"]),
    ],
)
def test_verbs_options_models_and_versions_complete(daemon: FakeDaemon, line: str, found: list[str]) -> None:
    daemon.answer("GET /tsctl/status", {"models": MODELS})

    assert tab(line) == found


def test_a_models_state_is_shown_beside_it(daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", {"models": MODELS})

    names = complete_model(context_of(), PARAMETER, "res")
    versions = complete_model(context_of(), PARAMETER, "resnet/1")

    assert [(item.value, item.help) for item in names] == [("resnet", "2.0, ready")]
    assert [(item.value, item.help) for item in versions] == [("resnet/1.0", "failed")]


@pytest.mark.parametrize("line", ["tsctl --socket {} describe m", "tsctl describe --socket {} m"])
def test_the_socket_on_the_line_is_asked(tmp_path: Path, line: str) -> None:
    other = FakeDaemon(tmp_path / "other.sock")
    other.answer("GET /tsctl/status", {"models": MODELS})

    try:
        found = tab(line.format(other.path))
    finally:
        other.close()

    assert found == ["mnist"]


def test_files_of_this_directory_complete_after_those_of_the_store(
    daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.answer("GET /tsctl/store", STORE)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("handler.py", "net.tar.gz", "resnet.mar", "notes.txt", ".hidden.mar", "two words.mar"):
        (folder / name).write_bytes(b"x" * 2048)
    (folder / "models").mkdir()

    items = complete_archive(context_of(), PARAMETER, "")

    assert words(items) == ["resnet.mar", "mnist", "handler.py", "models/", "net.tar.gz"]
    assert [item.help for item in items[2:]] == ["file, 2 KiB", None, "file, 2 KiB"]
    assert words(complete_archive(context_of(), PARAMETER, "ne")) == ["net.tar.gz"]


def test_archives_complete_by_the_model_stores_names_beside_their_sizes(
    daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "run" / "tsctl")
    daemon.answer("GET /tsctl/store", STORE)

    assert words(complete_archive(context_of(), PARAMETER, "res")) == ["resnet.mar"]
    items = complete_archive(context_of(), PARAMETER, "")
    assert [(item.value, item.help) for item in items] == [
        ("resnet.mar", "store, 230 MiB"), ("mnist", "store, directory"),
    ]  # fmt: skip
    assert complete_archive(context_of(), PARAMETER, "./mi")[0].type == "file"


def test_without_a_daemon_no_model_is_found_an_archive_is_a_path_and_nothing_said(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert complete_model(context_of(), PARAMETER, "") == []
    (item,) = complete_archive(context_of(), PARAMETER, "./mi")
    assert (item.value, item.type) == ("./mi", "file")
    assert capfd.readouterr() == ("", "")


def test_an_answer_that_makes_no_sense_is_none(daemon: FakeDaemon) -> None:
    daemon.answer_body("GET /tsctl/status", b"<html>", "text/html", 500)

    assert complete_model(context_of(), PARAMETER, "") == []
