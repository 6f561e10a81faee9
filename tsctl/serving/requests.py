"""The targets of a command line, checked before a daemon is asked or started."""

import os
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tsctl.client import DaemonClient
from tsctl.daemon import targets
from tsctl.daemon.targets import MODULE, ServeTarget, TargetError, split_function
from tsctl.errors import CliError

ARCHIVE_NOT_FOUND = "ModelNotFoundException"  # the kind of the daemon's error


def read_targets(
    texts: Sequence[str], directory: Path, *, name: str | None = None, handler: str | None = None
) -> list[ServeTarget]:
    """Read targets as typed, and check that each has a name of its own.

    Args:
        name, handler: of the only target, instead of the inferred ones.

    Raises:
        CliError: a target cannot be served, or its Python file has a syntax error.
    """
    if len(texts) > 1 and (name or handler):
        raise CliError("`--name` and `--handler` are for one TARGET", "name one target, or leave the option out")
    found = []
    for text in texts:
        target = checked_target(text, directory)
        if target.inferred:
            target = replace(target, model_name=name or target.model_name, handler=handler or target.handler)
        elif name or handler:
            target = replace(target, model_name=name or "", handler=handler or "")
        found.append(target)
    named: dict[str, str] = {}
    for text, target in zip(texts, found, strict=True):
        other = named.setdefault(target.model_name or target.url, text)
        if other is not text:
            raise CliError(
                f"both `{other}` and `{text}` would be served as `{target.model_name}`",
                "serve one of them from another terminal with `--name`",
            )
    return found


def checked_target(text: str, directory: Path) -> ServeTarget:
    """Read one target, and check the syntax of its Python file.

    Raises:
        CliError: the target cannot be served, or its file has a syntax error.
    """
    try:
        return targets.checked_target(text, directory)
    except TargetError as error:
        first, _, rest = error.message.partition("\n")
        raise CliError(first, error.hint, rest) from None


def registered_target(text: str, directory: Path) -> ServeTarget:
    """Read the target of `tsctl register`, which may also name an archive or a file in the daemon's model store.

    Raises:
        CliError: the target cannot be served, or its Python file has a syntax error.
    """
    if "://" in text:  # the operator allows patterns, of any scheme
        return ServeTarget(kind="url", url=text)
    path = directory / os.path.expanduser(split_function(text)[0])
    if "/" in text or MODULE.fullmatch(text) or os.path.exists(path):  # False where Path raises: a name too long
        return checked_target(text, directory)
    return ServeTarget(kind="archive", url=text)


def not_found(error: CliError, text: str, directory: Path, client: DaemonClient) -> CliError:
    """Return the error on a name that neither the directory nor the daemon's model store has.

    Args:
        error: the daemon's.
        client: of the daemon, which is asked what its store has.
    """
    try:
        checked_target(text, directory)
    except CliError as missing:
        if "has not been configured" in error.message:
            return missing
        stored = [each["name"] for each in client.json("GET", "/tsctl/store")]
        near = get_close_matches(text, stored, n=1)
        hint = f"the model store has `{near[0]}`" if near else missing.hint
        return CliError(f"{missing.message}, nor in the model store", hint)
    return error  # the file has been made meanwhile


def parameters_of(target: ServeTarget) -> dict[str, Any]:
    """Return the parameters of the registration of a target; an option of the user wins over each."""
    return {"url": None, "model_name": None, "handler": None, "fallback_workers": 1} | target.parameters()
