"""A token is read once, from a place that only its owner can read, and is never shown."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kit.build import make_config
from tsctl.daemon.config.tokens import Tokens, may_register, read_tokens
from tsctl.daemon.core.errors import StartError

MANAGED = {"management_address": "127.0.0.1:8081"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("  sesame \n")
    return file


def read(root: Path, environment: Mapping[str, str] | None = None, /, **flags: str) -> Tokens:
    return read_tokens(make_config(root, **flags), environment or {})


def refusal(root: Path, environment: Mapping[str, str] | None = None, /, **flags: str) -> StartError:
    with pytest.raises(StartError) as caught:
        read(root, environment, **flags)
    return caught.value


def test_without_a_management_address_no_token_is_needed(tmp_path: Path) -> None:
    assert read(tmp_path) == Tokens("", "", {})


def test_a_management_address_may_be_open_on_purpose(tmp_path: Path) -> None:
    assert read(tmp_path, **MANAGED, management_without_token="true").management == ""


def test_tokens_do_not_show_in_a_repr() -> None:
    assert "sesame" not in repr(Tokens("sesame", "sesame", {"token": "flag"}))


def test_a_management_address_without_a_token_stops_the_start(tmp_path: Path) -> None:
    error = refusal(tmp_path, **MANAGED)

    assert "the management address `127.0.0.1:8081` needs a token" in str(error)
    assert "--token-file" in error.hint and "--management-without-token" in error.hint


@pytest.mark.parametrize(
    ("flags", "token", "expected"),
    [
        pytest.param({}, "sesame", True, id="with a token"),
        pytest.param({}, "", False, id="not without one"),
        pytest.param({"enable_model_api": "true"}, "", True, id="without one if the operator says so"),
        pytest.param({"enable_model_api": "false"}, "sesame", False, id="never if the operator says so"),
    ],
)
def test_models_are_registered_at_a_management_address(
    tmp_path: Path, flags: dict[str, str], token: str, expected: bool
) -> None:
    assert may_register(make_config(tmp_path, **MANAGED, **flags), Tokens(token)) is expected


def test_an_address_that_registers_no_models_is_told_at_the_start(tmp_path: Path) -> None:
    (note,) = make_config(tmp_path, **MANAGED, management_without_token="true").notes

    assert "note: models are not registered or unregistered at 127.0.0.1:8081" in note and "--enable-model-api" in note
    assert make_config(tmp_path, **MANAGED, management_without_token="true", enable_model_api="false").notes == ()
    assert make_config(tmp_path).notes == ()


@pytest.mark.parametrize(
    ("environment", "flag", "token", "origin"),
    [
        pytest.param({}, True, "sesame", "flag", id="from a file, without the blanks around it"),
        pytest.param({"TSCTL_TOKEN": "poppy\n"}, False, "poppy", "environment", id="from the environment"),
        pytest.param({"TSCTL_TOKEN": "poppy"}, True, "sesame", "flag", id="rather from the file"),
    ],
)
def test_where_the_management_token_comes_from(
    tmp_path: Path, file: Path, environment: dict[str, str], flag: bool, token: str, origin: str
) -> None:
    tokens = read(tmp_path, environment, **MANAGED, **({"token_file": str(file)} if flag else {}))

    assert (tokens.management, tokens.inference) == (token, "")
    assert tokens.origins == {"token": origin}
    for given, flags in (({}, {"inference_token_file": str(file)}), ({"TSCTL_INFERENCE_TOKEN": "sesame"}, {})):
        alone = read(tmp_path, given, **flags)
        assert (alone.management, alone.inference) == ("", "sesame")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param({}, "there is no management address for it to protect", id="that protects nothing"),
        pytest.param(MANAGED | {"management_without_token": "true"}, "asks for none", id="that nobody asks for"),
    ],
)
def test_a_token_stops_the_start_rather_than_be_ignored(tmp_path: Path, flags: dict[str, str], sentence: str) -> None:
    error = refusal(tmp_path, {"TSCTL_TOKEN": "sesame"}, **flags)

    assert sentence in str(error) and error.hint
    assert "sesame" not in f"{error} {error.hint}"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601, 0o666])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, file: Path, mode: int) -> None:
    file.chmod(mode)

    error = refusal(tmp_path, **MANAGED, token_file=str(file))

    assert str(error) == f"others can use the token file `{file}` (mode {mode:04o})"
    assert error.hint == f"run `chmod 600 {file}`"


def test_a_file_of_somebody_else_is_refused(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = file.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    if owner == 0:  # root's files are everybody's, so make it a stranger's
        os.chown(file, 4711, -1)

    assert "belongs to user" in str(refusal(tmp_path, **MANAGED, token_file=str(file)))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"", "is empty", id="nothing"),
        pytest.param(b" \n\n", "is empty", id="blank lines"),
        pytest.param(b"open sesame", "cannot be sent", id="two words"),
        pytest.param(b"open\nsesame\n", "cannot be sent", id="two lines"),
        pytest.param("sésame".encode(), "cannot be sent", id="no ASCII"),
        pytest.param(b"sesame\0", "cannot be sent", id="a zero byte"),
        pytest.param(b"s" * 5000, "cannot be sent", id="too much"),
    ],
)
def test_what_is_no_token_is_refused_without_being_shown(
    tmp_path: Path, file: Path, content: bytes, sentence: str
) -> None:
    file.write_bytes(content)

    error = refusal(tmp_path, **MANAGED, token_file=str(file))

    assert sentence in str(error)
    assert not any(word in str(error) for word in ("sesame", "ésame", "ssss"))


def test_an_empty_variable_and_a_missing_file_are_refused_rather_than_ignored(tmp_path: Path) -> None:
    assert str(refusal(tmp_path, {"TSCTL_TOKEN": ""}, **MANAGED)) == "the token in TSCTL_TOKEN is empty"
    missing = refusal(tmp_path, inference_token_file=str(tmp_path / "missing"))
    assert str(missing) == f"cannot read the token file `{tmp_path}/missing`: No such file or directory"
    assert missing.hint == f"make one: `(umask 077; openssl rand -hex 32 > {tmp_path}/missing)`"


def key_file(root: Path, **entries: Any) -> str:
    file = root / "key_file.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps({"API": {"key": "api"}, **entries}))
    return str(file)


def test_torchserves_key_file_is_both_tokens(tmp_path: Path) -> None:
    until = {"expiration time": "2024-06-13T20:12:17.186554Z"}
    file = key_file(tmp_path, management={"key": "B-E5KSRM", **until}, inference={"key": "gNRuA7dS"})
    config = make_config(tmp_path, **MANAGED, token_file=file, inference_token_file=file)

    tokens = read_tokens(config, {}, today=1.7e9)

    assert (tokens.management, tokens.inference) == ("B-E5KSRM", "gNRuA7dS")
    (note,) = tokens.notes
    assert note.startswith(f"note: the key `management` in `{file}` does not expire here")
    with pytest.raises(StartError, match="has expired: its expiration time is 2024-06-13T20:12:17"):
        read_tokens(config, {}, today=1.8e9)


@pytest.mark.parametrize(
    "entries",
    [{}, {"management": "B"}, {"management": {"key": 5}}, {"management": {"key": "B", "expiration time": "soon"}}],
)
def test_a_key_file_without_the_key_is_named(tmp_path: Path, entries: dict[str, Any]) -> None:
    file = key_file(tmp_path, **entries)

    assert f"the key `management` in `{file}` " in str(refusal(tmp_path, **MANAGED, token_file=file))
