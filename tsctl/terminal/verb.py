"""The class of the verbs' commands: `--socket` after the verb, help in groups with examples, suggestions."""

import re
from pathlib import Path
from typing import Any

import click

from tsctl.errors import CliError
from tsctl.terminal.help import ALL, HelpCommand, HelpContext

_UNGROUPED = "Options"
_TWO_BRACKETS = re.compile(r" \[(default: [^]]*)\]\.  \[(.*)\]")  # ours, and click's of a range
_UNKNOWN_MODEL = ("ModelNotFoundException", "ModelVersionNotFoundException")


class GroupedOption(click.Option):
    """An option that the help lists under a title of its own.

    Attributes:
        group: the title; empty for "Options".
        everyday: whether it is in the short help, too.
    """

    def __init__(self, *args: Any, group: str = "", everyday: bool = True, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group
        self.everyday = everyday


class Verb(HelpCommand):
    """The command of one verb."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        if not any(param.name == "socket" for param in self.params):  # of `start` and `run` it is a setting
            self.params.append(_socket_option())

    @property
    def has_more(self) -> bool:
        return self._seldom > 0

    @property
    def _seldom(self) -> int:
        """The number of options that only the long help has."""
        return sum(not getattr(param, "everyday", True) for param in self.params)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        every = isinstance(ctx, HelpContext) and ctx.shows_all
        for title, records in self.options_by_group(ctx, everyday=not every).items():
            with formatter.section(title):
                formatter.write_dl(records)
        if self.has_more and not every:
            formatter.write_paragraph()
            formatter.write_text(f"{self._seldom} more options: `{ctx.command_path} --help {ALL}`")

    def options_by_group(self, ctx: click.Context, *, everyday: bool = False) -> dict[str, list[tuple[str, str]]]:
        """Return each group's title with its options and their texts; options without a group come first.

        Args:
            everyday: leave out options that are seldom used.
        """
        groups: dict[str, list[tuple[str, str]]] = {_UNGROUPED: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None or not isinstance(param, click.Option):
                continue
            if not everyday or getattr(param, "everyday", True):
                groups.setdefault(getattr(param, "group", "") or _UNGROUPED, []).append(
                    (record[0], _TWO_BRACKETS.sub(r". [\1; \2]", record[1]))
                )
        return groups

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from tsctl.terminal.examples import examples_of

        examples = examples_of(ctx.info_name or "")
        if not examples:
            return
        with formatter.section("Examples"):
            for example in examples:
                formatter.write_text(f"{example.text}:")
                with formatter.indentation():
                    formatter.write_text(f"\b\n{example.line}")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb.

        Raises:
            CliError: the verb failed; if a model is not registered, the hint names similar ones.
        """
        try:
            return super().invoke(ctx)
        except CliError as error:
            model = ctx.params.get("model")
            if error.kind in _UNKNOWN_MODEL and isinstance(model, str) and not error.hint:
                from tsctl.terminal.suggestions import suggest_model

                error.hint = suggest_model(model, ctx.obj)
            raise


def _socket_option() -> click.Option:
    """Return `--socket` for after the verb; the help of the root command describes the option."""
    return click.Option(
        ["--socket", "given_socket"],
        type=click.Path(path_type=Path),
        hidden=True,
        expose_value=False,
        callback=_take_socket,
    )


def _take_socket(ctx: click.Context, _param: click.Parameter, socket: Path | None) -> None:
    if socket is not None:
        ctx.obj = socket.absolute()
