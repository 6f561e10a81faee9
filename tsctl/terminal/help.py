"""The layout of `--help`: as wide as the terminal, at most 80 columns, and broken only between words.

Help comes in two sizes: everyday words alone, or all (`--help all`, `tsctl help all`).
"""

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator

import click

from tsctl.streams import echo

WIDEST = 80
NARROWEST = 30
_TERM = 30  # columns of the longest term that has its text beside it
_ALL = "tsctl.terminal.help.all"  # in the `meta` of a context: its help shows all
ALL = "all"


class HelpFormatter(click.HelpFormatter):
    """A formatter that never breaks a line within a word, such as `--batch-size` or a URL."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        if width is None:
            width = max(NARROWEST, min(shutil.get_terminal_size().columns, max_width or WIDEST) - 2)
        super().__init__(indent_increment, width, max_width)

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        first = f"{'Usage: ' if prefix is None else prefix}{prog} "
        room = len(first) + 20 <= self.width
        self.write(_filled(args, self.width, first, " " * (len(first) if room else 4)) + "\n")

    def write_text(self, text: str) -> None:
        indent = " " * self.current_indent
        self.write("\n\n".join(_paragraphs(text, self.width, indent)) + "\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = _TERM, col_spacing: int = 2) -> None:
        rows = list(rows)
        # Beside a long term there is no room for text on a narrow terminal: there, texts stand below their terms.
        most = min(col_max, self.width // 2 - col_spacing)
        beside = min(max((len(term) for term, _ in rows), default=0), most) + col_spacing
        for term, text in rows:
            indent = " " * (self.current_indent + beside)
            first = f"{'':{self.current_indent}}{term}"
            if len(term) + col_spacing > beside:
                self.write(f"{_filled(term, self.width, ' ' * self.current_indent, indent)}\n")
                first = ""
            self.write(_filled(text, self.width, f"{first:{len(indent)}}", indent) + "\n" if text else "")


class HelpContext(click.Context):
    formatter_class = HelpFormatter

    @property
    def shows_all(self) -> bool:
        """Whether the help shows more than what is used every day."""
        return bool(self.meta.get(_ALL))

    def show_all(self) -> None:
        self.meta[_ALL] = True


class _HelpOption(click.Option):
    """An option whose value may be left out, and has no name in the help if it is of no use."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return None if record is None else (record[0].rstrip(), record[1])


class HelpCommand(click.Command):
    """A command whose `--help` may be followed by `all`."""

    context_class = HelpContext
    _option: click.Option | None = None

    @property
    def has_more(self) -> bool:
        """Whether `all` shows more."""
        return False

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        if self._option is None:  # one object, because click compares it with what was given
            more = f"; with `{ALL}`, also what is seldom used" if self.has_more else ""
            self._option = _HelpOption(
                self.get_help_option_names(ctx), is_flag=False, flag_value="", expose_value=False, is_eager=True,
                metavar=f"[{ALL}]" if self.has_more else "", help=f"Show this message and exit{more}.",
                callback=_show_help,
            )  # fmt: skip
        return self._option


def _show_help(ctx: click.Context, _param: click.Parameter, word: str | None) -> None:
    if word is None or ctx.resilient_parsing:
        return
    if word == ALL and isinstance(ctx, HelpContext):
        ctx.show_all()
    echo(ctx.get_help())
    ctx.exit()


def _paragraphs(text: str, width: int, indent: str) -> Iterator[str]:
    """Yield a text's paragraphs; one that begins with `\\b` keeps its lines."""
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraph.lstrip().startswith("\b"):
            lines = paragraph.lstrip()[1:].strip("\n").splitlines()
            yield "\n".join(f"{indent}{line}".rstrip() for line in lines)
        else:
            yield _filled(paragraph, width, indent, indent)


def _filled(text: str, width: int, first: str, indent: str) -> str:
    """Return the words of a text in lines; `first` begins the first line."""
    return textwrap.fill(
        " ".join(text.split()), width, initial_indent=first, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    ) or first.rstrip()  # fmt: skip
