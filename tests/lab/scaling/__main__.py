"""`python -m tests.lab.scaling [--markdown FILE]`: compare the rule for the number of workers with fixed numbers."""

import argparse
import sys
from pathlib import Path

from tests.lab.policies.page import insert
from tests.lab.scaling.table import HEADING, markdown, measure_all

SECTION = "scaling"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.scaling", description="Compare numbers of workers.")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="put the table into this file, between its markers"
    )
    options = parser.parse_args(arguments)
    text = f"{HEADING}\n\n" + "\n".join(markdown(measure_all()))
    print(text)
    if options.markdown:
        insert(options.markdown, SECTION, text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
