"""The bearer tokens of the TCP addresses: their sources, and the rules that require them.

    management    --token-file, else TSCTL_TOKEN
    inference     --inference-token-file, else TSCTL_INFERENCE_TOKEN

A token is a secret: nothing here, no message and no `repr`, shows one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.private_file import read_private
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.tables import SETTINGS

MANAGEMENT_VARIABLE = "TSCTL_TOKEN"
INFERENCE_VARIABLE = "TSCTL_INFERENCE_TOKEN"
_MOST = 4096  # bytes of a token; a header has its limit, too


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that clients must send; empty where none is required.

    Attributes:
        origins: `token` and `inference_token`, as far as they are set → "flag" or "environment".
    """

    management: str = field(default="", repr=False)
    inference: str = field(default="", repr=False)
    origins: Mapping[str, str] = field(default_factory=dict)


def read_tokens(config: Config, environment: Mapping[str, str]) -> Tokens:
    """Read both tokens, once.

    Raises:
        StartError: a token cannot be used, would protect nothing, or is missing where one is required.
    """
    management, whence = _token(config, "token_file", environment, MANAGEMENT_VARIABLE)
    inference, inference_whence = _token(config, "inference_token_file", environment, INFERENCE_VARIABLE)
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
    return Tokens(management, inference, {name: origin for name, origin in origins.items() if origin})


def may_register(config: Config, tokens: Tokens) -> bool:
    """Return whether models may be registered at a TCP address: as the operator says, else if there is a token."""
    chosen: bool | None = config.enable_model_api
    return bool(tokens.management) if chosen is None else chosen


def _token(config: Config, setting: str, environment: Mapping[str, str], variable: str) -> tuple[str, str]:
    """Return one token and its origin; both are empty if there is none."""
    file: Path | None = getattr(config, setting)
    if file is not None:
        text = read_private(file, "token", most=_MOST + 1).decode("latin-1")
        return _checked(text, f"the token in `{file}`"), config.origins[setting]
    if variable in environment:
        return _checked(environment[variable], f"the token in {variable}"), "environment"
    return "", ""


def _checked(text: str, what: str) -> str:
    token = text.strip()
    if not token:
        raise StartError(f"{what} is empty", "write one there, such as the output of `openssl rand -hex 32`")
    if len(token) > _MOST or not all("!" <= character <= "~" for character in token):
        raise StartError(f"{what} cannot be sent: it should be one line of at most {_MOST} ASCII characters, no spaces")
    return token
