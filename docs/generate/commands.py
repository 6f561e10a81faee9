"""The pages of the command line, from click and from the exit codes of its errors."""

import inspect
import re
from collections.abc import Iterator, Mapping

import click

from docs.generate.markdown import code, table
from tsctl import errors
from tsctl.cli import all_verbs, main
from tsctl.handlers import wire
from tsctl.terminal.examples import all_examples
from tsctl.terminal.verb import Verb

# exit code → its meaning
TSCTL_EXITS: dict[str, str] = {
    "0": "Done.",
    str(click.UsageError.exit_code): "Wrong usage: an unknown command or option, or a wrong value.",
    **dict(re.findall(r"exit code (\d+): (.*)", errors.__doc__ or "")),
}


def commands() -> str:
    """Write a section for each verb: its usage, its help, its options."""
    root = click.Context(main, info_name="tsctl", **main.context_settings)  # `main` keeps the help option made first
    head = """# Commands

Data goes to stdout, everything else to stderr. Every listing has `--json`. [Exit codes](exit-codes.md) tell what happened.
`MODEL` is `NAME` or `NAME/VERSION`; without a version it is the default one. The daemon is found by `--socket`, before or
after the verb, by `TSCTL_SOCKET`, or in `$XDG_RUNTIME_DIR/tsctl`, else `/tmp/tsctl-UID`.
"""
    return "\n".join([head, *(_section(verb, root) for verb in all_verbs())])


def _section(verb: str, root: click.Context) -> str:
    command = main.get_command(root, verb)
    assert isinstance(command, Verb)
    context = click.Context(command, info_name=verb, parent=root)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## tsctl {verb}\n", f"```text\n{usage}\n```\n", *_paragraphs(inspect.cleandoc(command.help or ""))]
    for title, records in command.options_by_group(context).items():
        shown = [(code(name), text) for name, text in records if "--help" not in name]
        if shown:
            parts.append(table((title.lower() if title == "Options" else title, ""), shown))
    lines = "\n".join(f"# {example.text}\n{example.line}" for example in all_examples()[verb])
    parts.append(f"```bash\n{lines}\n```\n")
    return "\n".join(parts)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; where click was told not to wrap, as they stand."""
    for paragraph in re.split(r"\n\n+", text):
        if paragraph.startswith("\b"):
            yield f"```text\n{paragraph[1:].strip(chr(10))}\n```\n"
        else:
            yield paragraph + "\n"


def exit_codes() -> str:
    """Write the exit codes of `tsctl`, of the daemon and of its workers."""
    daemon = {"0": "Stopped as told.", "1": "Could not start.", "2": "Wrong arguments."}
    workers = {
        str(wire.EXIT_LOAD_FAILED): "The model could not be loaded: another worker would not help.",
        str(wire.EXIT_DISCONNECTED): "The handler took away the worker's connection to the daemon.",
        str(wire.EXIT_GPU_LOST): "The worker's GPU context was broken: only a new process can use the GPU.",
    }
    return f"""# Exit codes

## tsctl

{_codes(TSCTL_EXITS)}
`tsctl run` ends with the exit code of the daemon.

## The daemon

{_codes(daemon)}
## Workers

`tsctl describe` shows how the last worker ended, and `tsctl logs MODEL` what it printed.

{_codes(workers)}"""


def _codes(texts: Mapping[str, str]) -> str:
    rows = sorted(texts.items(), key=lambda each: int(each[0]))
    return table(("code", ""), [(code(number), text[:1].upper() + text[1:]) for number, text in rows])
