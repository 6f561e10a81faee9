"""`tsctl key`: a key is shown once, and the daemon reads what the file then says."""

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tsctl.cli import main
from tsctl.daemon.extensions.keys.known_clients import KnownClient, digest_of, read_clients


def make(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["key", *arguments, "--keys-file", str(file)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.toml"


def test_the_key_is_printed_and_its_digest_is_in_a_private_file(file: Path) -> None:
    made = make(file, "mobile")

    key = made.stdout.strip()
    assert made.exit_code == 0 and key.startswith("tsctl_") and len(key) == 49
    assert f"Added a key of client `mobile` to `{file}`" in made.stderr
    assert key not in file.read_text()
    assert read_clients(file) == {digest_of(key): KnownClient("mobile")}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_each_right_is_in_the_file(file: Path) -> None:
    rights = ["--models", "a, b-*", "--rate", "2.5", "--burst", "7", "--priority", "low", "--bytes", "1MiB"]

    key = make(file, "mobile", *rights).stdout.strip()

    assert read_clients(file)[digest_of(key)] == KnownClient("mobile", ("a", "b-*"), 2.5, 7, True, 1024 * 1024)


def test_a_second_key_has_the_rights_of_the_client(file: Path) -> None:
    file.write_text("# kept by hand\n")
    first = make(file, "mobile", "--rate", "5", "--models", "a").stdout.strip()
    second = make(file, "mobile").stdout.strip()
    make(file, "web")

    clients = read_clients(file)
    assert clients[digest_of(first)] is clients[digest_of(second)]
    assert len(clients) == 3 and file.read_text().startswith("# kept by hand\n")


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (["a b"], "", "`a b` cannot be a client's name"),
        (["a", "--bytes", "many"], "", "`many` is not a size"),
        *[(["a", "--rate", rate], "", f"`--rate` is {rate}") for rate in ("inf", "nan", "1e-07")],
        (["a", "--models", ""], "", "`--models` names no model"),
        (["a", "--models", " , "], "", "`--models` names no model"),
        (["a", "--rate", "1"], "[[client]]\nname = 'a'\nsha256 = ''", "client `a` is in"),
        (["a"], "[[client", "is no keys file"),
        (["a"], "client = 3", "`client` is no array of tables"),
    ],
)
def test_what_cannot_be_added_changes_nothing(file: Path, arguments: list[str], text: str, message: str) -> None:
    file.write_text(text)

    refused = make(file, *arguments)

    assert refused.exit_code == 1 and message in refused.stderr
    assert file.read_text() == text


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    refused = make(tmp_path / "nowhere" / "keys.toml", "a")

    assert refused.exit_code == 1 and "cannot write" in refused.stderr
