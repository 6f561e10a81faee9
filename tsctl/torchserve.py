"""torchserve's own flags, which `tsctl start` and `tsctl run` also accept.

`--models`, `--ts-config`, `--model-store`, `--log-config` and `--enable-model-api` are settings of the daemon
(daemon/settings.py). The others are in the table here: their effect, or a note that they have none.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from tsctl.streams import echo
from tsctl.terminal.verb import GroupedOption, Verb

F = TypeVar("F", bound=Callable[..., Any])


class Flag(NamedTuple):
    """A flag: its names, the name of its value (None for a switch), its help, and a note printed when given."""

    names: tuple[str, ...]
    metavar: str | None
    help: str
    note: str


FLAGS: tuple[Flag, ...] = (
    Flag(("--foreground",), None, "Stay in the foreground, as `tsctl run` does.", ""),
    Flag(
        ("--ncs", "--no-config-snapshots"),
        None,
        "Same as --no-restore.",
        "`{flag}` is taken as `--no-restore`: nothing is restored, and changes are remembered for the next run",
    ),
    Flag(
        ("--disable-token-auth", "--dt"),
        None,
        "Same as --management-without-token.",
        "`{flag}` is taken as `--management-without-token`; predictions need a token only if one is configured",
    ),
    Flag(("--cpp-log-config",), "FILE", "No effect.", "`{flag}` has no effect: there is no C++ backend here"),
    Flag(
        ("--plugins-path", "--ppath"),
        "DIR",
        "No effect.",
        "`{flag}` has no effect: Java plugins are not loaded here",
    ),
    Flag(("--workflow-store",), "DIR", "No effect.", "`{flag}` has no effect: workflows are not served here"),
)


GROUP = "torchserve's flags"

# All names that torchserve's parser knows, in its order; argparse takes any beginning that only one of them has.
_NAMES = (
    "--ts-config", "--model-store", "--models", "--log-config", "--enable-model-api",
    *(name for flag in FLAGS for name in flag.names),
)  # fmt: skip
_ALSO = {"--model": "--models"}  # two names begin so, and its examples mean this one

# Flags equivalent to a setting: its name and its value.
_MEANT = {"ncs": ("restore", False), "disable_token_auth": ("management_without_token", True)}


class TorchServeCommand(Verb):
    """A command that reads torchserve's flags as its parser does.

    `--models` takes all words up to the next option, and the beginning of a flag's name is enough.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours = {name for each in self.params for name in (*each.opts, *each.secondary_opts)}
        return super().parse_args(ctx, spread_models(complete(args, ours)))


def complete(arguments: Sequence[str], ours: Container[str]) -> list[str]:
    """Replace each beginning of a torchserve flag by the flag, if no other of them begins so.

    Args:
        ours: names of options, which stay as they are.
    """
    completed: list[str] = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name.startswith("--") and name != "--" and name not in ours:
            found = [each for each in _NAMES if each.startswith(name)]
            name = _ALSO.get(name, found[0] if len(found) == 1 else name)
        completed.append(f"{name}{equals}{value}")
    return completed


def spread_models(arguments: Sequence[str]) -> list[str]:
    """Rewrite `--models A B` as `--models=A --models=B`; a `--models` without a word stays unchanged."""
    spread: list[str] = []
    taking = False
    for argument in arguments:
        if argument == "--models":
            taking = True
            spread.append(argument)
        elif taking and not argument.startswith("-"):
            if spread[-1] == "--models":
                spread.pop()
            spread.append(f"--models={argument}")
        else:
            taking = False
            spread.append(argument)
    return spread


def torchserve_options(function: F) -> F:
    """Add an option for each flag of the table."""
    for flag in reversed(FLAGS):
        value: dict[str, Any] = {"is_flag": True} if flag.metavar is None else {"metavar": flag.metavar}
        option = click.option(
            *flag.names, _name(flag), cls=GroupedOption, group=GROUP, everyday=False, help=flag.help, **value
        )
        function = option(function)
    return function


def take_torchserve_flags(given: dict[str, Any]) -> bool:
    """Print the notes of the given flags, and replace the flags that are equivalent to a setting.

    Returns:
        Whether the daemon stays in the foreground.

    Raises:
        click.UsageError: a flag and an option contradict each other.
    """
    values = {flag: given.pop(_name(flag)) for flag in FLAGS}
    for flag, value in values.items():
        if value and flag.note:
            echo(f"note: {flag.note.format(flag=flag.names[0])}", err=True)
    by_name = {_name(flag): value for flag, value in values.items()}
    for name, (setting, meant) in _MEANT.items():
        if by_name[name]:
            if given.get(setting) not in (None, meant):
                opposite = f"--{'' if given[setting] else 'no-'}{setting.replace('_', '-')}"
                raise click.UsageError(f"`--{name.replace('_', '-')}` and `{opposite}` contradict each other")
            given[setting] = meant
    return bool(by_name["foreground"])


def _name(flag: Flag) -> str:
    return flag.names[0].removeprefix("--").replace("-", "_")
