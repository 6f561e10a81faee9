"""Shell completion: the scripts, and completions from the running daemon.

The scripts are click's: each runs `tsctl` itself to get the completions. Names of models and archives come from the
daemon within 0.2 s; without a daemon there are none, and no message.
"""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")
TIMEOUT = 0.2  # seconds


def script(shell: str) -> str:
    """Return the completion script of a shell, one of `SHELLS`."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    completion = completion_class(click.Command("tsctl"), {}, "tsctl", "_TSCTL_COMPLETE")
    # Not `source()`: for bash it would run bash to get its version, and complain.
    return completion.source_template % completion.source_vars()


def complete_model(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of registered models; after a slash, their versions."""
    status = _ask(ctx, "/tsctl/status") or {"models": []}
    names: dict[str, str] = {}
    for model in status["models"]:
        if "/" in incomplete:
            names[f"{model['name']}/{model['version']}"] = model["state"]
        elif model["default"]:
            names[model["name"]] = f"{model['version']}, {model['state']}"
    return [CompletionItem(name, help=text) for name, text in names.items() if name.startswith(incomplete)]


def complete_archive(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the archives of the model store; a path if none fits."""
    found = [archive for archive in _ask(ctx, "/tsctl/store") or [] if archive["name"].startswith(incomplete)]
    items = [CompletionItem(archive["name"], help=_size(archive["bytes"])) for archive in found]
    return items or [CompletionItem(incomplete, type="file")]


def _size(count: int | None) -> str:
    """Return a file's size, or `directory`. Not by tsctl.render: completion must not wait for rich."""
    return "directory" if count is None else f"{count / 2**20:.1f} MiB"


def _ask(ctx: click.Context, target: str) -> Any:
    from tsctl.client import DaemonClient

    # During completion, click parses the line without running the root command: its option is in `params`.
    root = ctx.find_root()
    socket: Path | None = root.params.get("socket") or None
    try:
        return DaemonClient(socket, timeout=TIMEOUT).json("GET", target)
    except Exception:  # noqa: BLE001 - completion stays silent on errors
        return None
