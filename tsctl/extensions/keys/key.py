"""`tsctl key`."""

import hashlib
import json
import os
import re
import secrets
import tomllib
from pathlib import Path
from typing import Any

import click

from tsctl.daemon.extensions.keys import CLIENT_NAME, LEAST_RATE, MOST_RATE
from tsctl.daemon.setting_values import parse_size
from tsctl.errors import CliError
from tsctl.streams import echo
from tsctl.terminal.verb import Verb

_RANDOM = 32  # bytes


@click.command(cls=Verb)
@click.argument("name", metavar="NAME")
@click.option(
    "--keys-file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="TSCTL_KEYS_FILE",
    help="The file to add the client to, made if there is none: that of `tsctl start --keys-file`.",
)
@click.option(
    "--models", help="Comma-separated names or patterns of the models that the client may use [default: all]."
)
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Predictions a second [default: no limit].")
@click.option("--burst", type=click.IntRange(1), help="Predictions at once [default: those of a second].")
@click.option("--priority", type=click.Choice(["normal", "low"]), help="The priority of all its requests.")
@click.option("--bytes", "size", metavar="SIZE", help="The most bytes of a body [default: --max-request-size].")
def command(
    name: str,
    keys_file: Path,
    models: str | None,
    rate: float | None,
    burst: int | None,
    priority: str | None,
    size: str | None,
) -> None:
    """Make a key for the client NAME, and print it: the only time that it is shown.

    The file gets the key's SHA-256. A daemon with this file knows the client a second later. A client that is there
    already gets one more key, with the rights that it has. Delete its table from the file to revoke a key.
    """
    if not re.fullmatch(CLIENT_NAME, name):
        raise CliError(f"`{name}` cannot be a client's name", "use letters, digits, `.`, `_` and `-`, at most 64")
    if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:  # nor NaN
        raise CliError(f"`--rate` is {rate:g}", "give 0.000001 to 1000000, or leave it out for no limit")
    rights = {
        "models": _models(models),
        "rate": rate, "burst": burst, "priority": priority, "bytes": _size(size),
    }  # fmt: skip
    wanted = {option: value for option, value in rights.items() if value is not None}
    known = next((each for each in _clients(keys_file) if each.get("name") == name), None)
    if known is not None:
        if wanted:
            raise CliError(f"client `{name}` is in `{keys_file}` already", "leave out its rights to add a key")
        wanted = {option: value for option, value in known.items() if option not in ("name", "sha256")}
    key = f"tsctl_{secrets.token_urlsafe(_RANDOM)}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    _append(keys_file, "".join(f"{word} = {json.dumps(value)}\n" for word, value in _table(name, digest, wanted)))
    echo(f"Added a key of client `{name}` to `{keys_file}`; the key, which is not shown again:", err=True)
    echo(key)


def _models(text: str | None) -> list[str] | None:
    found = None if text is None else [each.strip() for each in text.split(",") if each.strip()]
    if found == []:
        raise CliError("`--models` names no model", "leave it out for all models")
    return found


def _size(text: str | None) -> str | None:
    if text is not None:
        try:
            parse_size(text)
        except ValueError as error:
            raise CliError(str(error)) from None
    return text


def _table(name: str, digest: str, rights: dict[str, Any]) -> list[tuple[str, Any]]:
    return [("name", name), ("sha256", digest), *rights.items()]


def _clients(file: Path) -> list[dict[str, Any]]:
    try:
        found = tomllib.loads(file.read_text()).get("client", [])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CliError(f"cannot read `{file}`: {error.strerror}") from None
    except ValueError as error:
        raise CliError(f"`{file}` is no keys file: {error}", "mend it, or name another file") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise CliError(f"`{file}` is no keys file: `client` is no array of tables", "begin each with `[[client]]`")
    return found


def _append(file: Path, table: str) -> None:
    """Add a table to the file in one write, so that a daemon reads it whole."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "a") as opened:
            opened.write(f"\n[[client]]\n{table}")
    except OSError as error:
        raise CliError(f"cannot write `{file}`: {error.strerror}", "choose another `--keys-file`") from None
