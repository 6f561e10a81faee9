"""The bearer tokens of the TCP addresses: their sources, and the rules that require them.

    management    --token-file, else TSCTL_TOKEN
    inference     --inference-token-file, else TSCTL_INFERENCE_TOKEN

Either file may be TorchServe's `key_file.json`, whose keys are then the tokens.

A token is a secret: nothing here, no message and no `repr`, shows one.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from tsctl.daemon.config.config import INFERENCE_VARIABLE, MANAGEMENT_VARIABLE, Config
from tsctl.daemon.config.private_file import read_private
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.tables import SETTINGS

_MOST = 4096  # bytes of a token; a header has its limit, too
_KEYS = {"token_file": "management", "inference_token_file": "inference"}  # setting → the key in `key_file.json`
_EXPIRES = "expiration time"


@dataclass(slots=True)
class Tokens:
    """The tokens that clients must send; empty where none is required.

    Attributes:
        clients: those that an extension knows by keys of their own; None without one.
        origins: `token` and `inference_token`, as far as they are set → "flag" or "environment".
        notes: sentences for the operator.
    """

    management: str = field(default="", repr=False)
    inference: str = field(default="", repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    clients: Clients | None = field(default=None, repr=False, compare=False)


def read_tokens(config: Config, environment: Mapping[str, str], today: float | None = None) -> Tokens:
    """Read both tokens, once.

    Args:
        today: seconds since 1970, for keys of TorchServe that expire; None for now.

    Raises:
        StartError: a token cannot be used, would protect nothing, or is missing where one is required.
    """
    now = time.time() if today is None else today
    notes: list[str] = []
    management, whence = _token(config, "token_file", environment, MANAGEMENT_VARIABLE, now, notes)
    inference, inference_whence = _token(config, "inference_token_file", environment, INFERENCE_VARIABLE, now, notes)
    others = [row for row in SETTINGS if row.manages]
    named = [row for row in others if getattr(config, row.name)]
    if named and not management:
        address = getattr(config, named[0].name)[0]
        raise StartError(
            f"the {named[0].manages} `{address}` needs a token: its clients can run code here",
            "add `--token-file FILE`",
        )
    if config.management_address is None:
        if management and not named:
            flags = " or ".join(f"`{flag}`" for flag in ("--management-address", *(row.flag for row in others)))
            raise StartError(
                "a management token is set, and there is no management address for it to protect",
                f"add {flags}; `--inference-token-file` is what protects predictions",
            )
    elif management and config.management_without_token:
        raise StartError(
            "a management token is set, and `--management-without-token` asks for none", "leave one of them out"
        )
    elif not management and not config.management_without_token:
        raise StartError(
            f"the management address `{config.management_address}` needs a token: its clients can run code here",
            "add `--token-file FILE`, or `--management-without-token` if all its clients may do so",
        )
    origins = {"token": whence, "inference_token": inference_whence}
    return Tokens(management, inference, {name: origin for name, origin in origins.items() if origin}, tuple(notes))


def may_register(config: Config, tokens: Tokens) -> bool:
    """Return whether models may be registered at a TCP address: as the operator says, else if there is a token."""
    chosen: bool | None = config.enable_model_api
    return bool(tokens.management) if chosen is None else chosen


def _token(
    config: Config, setting: str, environment: Mapping[str, str], variable: str, now: float, notes: list[str]
) -> tuple[str, str]:
    """Return one token and its origin; both are empty if there is none."""
    file: Path | None = getattr(config, setting)
    if file is not None:
        remedy = "" if file.exists() else f"make one: `(umask 077; openssl rand -hex 32 > {quote(str(file))})`"
        text = read_private(file, "token", most=_MOST + 1, hint=remedy).decode("latin-1")
        what = f"the token in `{file}`"
        if text.lstrip().startswith("{"):
            name = _KEYS[setting]
            what = f"the key `{name}` in `{file}`"
            text = _key_of(text, name, what, now, notes)
        return _checked(text, what), config.origins[setting]
    if variable in environment:
        return _checked(environment[variable], f"the token in {variable}"), "environment"
    return "", ""


def _key_of(text: str, name: str, what: str, now: float, notes: list[str]) -> str:
    """Return a key of TorchServe's `key_file.json`.

    Args:
        now: seconds since 1970.
        notes: gets a sentence if the key would have expired later.

    Raises:
        StartError: the text is no such file, or the key has expired.
    """
    try:
        document = json.loads(text)
        entry = document[name]
        key, expires = entry["key"], entry.get(_EXPIRES, "")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StartError(
            f"{what} is not there", f'TorchServe\'s file reads {{"{name}": {{"key": "…"}}}}; a token file has one line'
        ) from None
    if not isinstance(key, str) or not isinstance(expires, str):
        raise StartError(f"{what} is no text")
    if expires:
        try:
            until = datetime.fromisoformat(expires)
        except ValueError:
            raise StartError(f"{what} has the {_EXPIRES} `{expires[:100]}`, which is none") from None
        if (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() <= now:
            remedy = "write another key there without one; keys here do not expire"
            raise StartError(f"{what} has expired: its {_EXPIRES} is {expires}", remedy)
        notes.append(f"note: {what} does not expire here; its {_EXPIRES}, {expires}, counts at the start only")
    return key


def _checked(text: str, what: str) -> str:
    token = text.strip()
    if not token:
        raise StartError(f"{what} is empty", "write one there, such as the output of `openssl rand -hex 32`")
    if len(token) > _MOST or not all("!" <= character <= "~" for character in token):
        raise StartError(f"{what} cannot be sent: it should be one line of at most {_MOST} ASCII characters, no spaces")
    return token
