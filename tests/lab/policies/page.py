"""Programs that compare `auto` with the best that a search finds, and write their tables into docs/batching.md."""

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

Case = TypeVar("Case")
Result = TypeVar("Result")


def insert(page: Path, section: str, text: str) -> None:
    """Replace the text between `<!-- section -->` and `<!-- /section -->`."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    before, _, rest = page.read_text().partition(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


def compare(
    section: str, arguments: Sequence[str], cases: Sequence[Case], measure: Callable[[Case], Result],
    text: Callable[[Sequence[Result]], str], passes: Callable[[Result], bool],
) -> int:  # fmt: skip
    """Measure all cases, on all cores; print the text, and what does not pass; return 1 if anything does not.

    Args:
        section: of the page that `--markdown FILE` names.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.lab.policies.{section}")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the table into this file, into its section")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases that have this in their words")
    options = parser.parse_args(arguments)
    with multiprocessing.Pool() as pool:
        results = pool.map(measure, [case for case in cases if options.only in str(case)], chunksize=1)
    print(told := text(results))
    missed = [result for result in results if not passes(result)]
    print(*missed, sep="\n", file=sys.stderr)
    if options.markdown:
        insert(options.markdown, section, told)
    return int(bool(missed))
