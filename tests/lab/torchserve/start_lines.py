"""Each documented `torchserve --start …`, read by `tsctl start` as the same line with the program's name exchanged."""

import argparse
import contextlib
import importlib.util
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from tests.lab.torchserve.checkout import pages
from tests.lab.torchserve.documented import Documented, commands
from tests.lab.torchserve.purposes import judge_refusal
from tests.lab.torchserve.verdict import Outcome, Row
from tsctl.commands.start import command as start

Accepts = Callable[[Sequence[str]], bool]


def lines(root: Path) -> Iterator[Documented]:
    """Yield the documented start lines of a checkout."""
    for page in pages(root):
        yield from (each for each in commands(page, "torchserve") if "--start" in each.words)


def judge(root: Path, only: str = "") -> Iterator[Row]:
    """Yield a row for each start line whose place contains `only`."""
    theirs = their_parser(root)
    for each in lines(root):
        name = f"{each.page.relative_to(root)}:{each.line}"
        if only in name:
            yield judge_line(name, each.words, theirs)


def judge_line(name: str, words: Sequence[str], theirs: Accepts) -> Row:
    """Return the row of one line: whether `tsctl start` takes its words, `--start` left out."""
    try:
        start.make_context("start", [word for word in words if word != "--start"])
    except click.UsageError as error:
        if not theirs(words):
            return Row(name, Outcome.NEITHER, error.format_message())
        return judge_refusal(name, error.format_message())
    return Row(name, Outcome.WORKS)


def their_parser(root: Path) -> Accepts:
    """Return whether TorchServe's own parser, of the checkout, takes some words."""
    spec = importlib.util.spec_from_file_location("arg_parser_of_torchserve", root / "ts" / "arg_parser.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parser: argparse.ArgumentParser = module.ArgParser.ts_parser()

    def accepts(words: Sequence[str]) -> bool:
        with contextlib.redirect_stderr(io.StringIO()):
            try:
                parser.parse_args(list(words))
            except SystemExit:
                return False
        return True

    return accepts
