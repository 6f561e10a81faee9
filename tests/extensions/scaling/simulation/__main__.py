"""`python -m tests.lab simulate-scaling`: compare the rule for the number of workers with fixed numbers."""

import argparse
import sys
from pathlib import Path

from tests.extensions.scaling.simulation.table import HEADING, markdown, measure_all
from tests.lab.policies.page import insert

SECTION = "scaling"


def main(arguments: list[str]) -> int:
    program = "python -m tests.lab simulate-scaling"
    parser = argparse.ArgumentParser(prog=program, description="Compare numbers of workers.")
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
