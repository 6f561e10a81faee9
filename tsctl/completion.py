"""Shell completion: the scripts, and completions from the running daemon.

The scripts are click's, with a few changes: each runs `tsctl` itself to get the completions. Names of models and
archives come from the daemon within 0.2 s; without a daemon there are none, and no message.
"""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from tsctl.daemon.setting_values import size_text

SHELLS = ("bash", "zsh", "fish")
TIMEOUT = 0.2  # seconds
# What `tsctl register` takes, by the end of its name; directories, too.
SERVED = (".mar", ".tar.gz", ".tgz", ".py", ".pt", ".pth", ".pt2", ".onnx")
_MOST_FILES = 200

# shell → (text of click's script, text in its place). In bash and zsh, a directory is completed without a space after
# it. In fish, the text beside a completion was cut at its first comma.
_CHANGES = {
    "bash": (
        "    return 0\n",
        "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then\n"
        "        compopt -o nospace\n"
        "    fi\n\n"
        "    return 0\n",
    ),
    "zsh": (
        '    if [ -n "$completions" ]; then\n',
        '    compadd -U -S "" -V unsorted -- ${(M)completions:#*/}\n'
        "    completions=(${completions:#*/})\n"
        '    if [ -n "$completions" ]; then\n',
    ),
    "fish": ('(string split "," $completion)', '(string split -m 1 "," $completion)'),
}


def script(shell: str) -> str:
    """Return the completion script of a shell, one of `SHELLS`."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    completion = completion_class(click.Command("tsctl"), {}, "tsctl", "_TSCTL_COMPLETE")
    # Not `source()`: for bash it would run bash to get its version, and complain.
    text = completion.source_template % completion.source_vars()
    before, after = _CHANGES[shell]
    assert text.count(before) == 1, f"click's script for {shell} has changed"
    return text.replace(before, after)


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


def complete_weight(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the versions of the model on the line, each with `=`: their weights are the user's."""
    status = _ask(ctx, "/tsctl/status") or {"models": []}
    named = [model for model in status["models"] if model["name"] == ctx.params.get("model")]
    found = {f"{model['version']}=": model["state"] for model in named}
    return [CompletionItem(text, help=state) for text, state in found.items() if text.startswith(incomplete)]


def complete_file(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a path."""
    return [CompletionItem(incomplete, type="file")]


def complete_archive(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the archives of the model store, and what can be registered of this directory; a path if none fits."""
    found = [archive for archive in _ask(ctx, "/tsctl/store") or [] if archive["name"].startswith(incomplete)]
    items = [CompletionItem(archive["name"], help=f"store, {_size(archive['bytes'])}") for archive in found]
    known = {item.value for item in items}
    if "/" not in incomplete:
        items += [item for item in _local(incomplete) if item.value not in known]
    return items or [CompletionItem(incomplete, type="file")]


def _local(incomplete: str) -> Iterator[CompletionItem]:
    """Yield the archives, files and directories of this directory that `tsctl register` takes."""
    try:
        with os.scandir() as entries:
            found = sorted((each for each in entries if each.name.startswith(incomplete)), key=lambda each: each.name)
    except OSError:
        return
    for entry in found[:_MOST_FILES]:
        if entry.name.startswith(".") or shlex.quote(entry.name) != entry.name:  # the shell completes it by its path
            continue
        if entry.is_dir():
            yield CompletionItem(f"{entry.name}/")
        elif entry.name.endswith(SERVED) and entry.is_file():
            yield CompletionItem(entry.name, help=f"file, {_size(entry.stat().st_size)}")


def _size(count: int | None) -> str:
    return "directory" if count is None else size_text(count)


def _ask(ctx: click.Context, target: str) -> Any:
    from tsctl.client import DaemonClient

    # During completion, click parses the line without running the root command: its option is in `params`. The
    # verb's own is in `obj`.
    root = ctx.find_root()
    socket: Path | None = ctx.obj or root.params.get("socket") or None
    try:
        return DaemonClient(socket, timeout=TIMEOUT).json("GET", target)
    except Exception:  # noqa: BLE001 - completion stays silent on errors
        return None
