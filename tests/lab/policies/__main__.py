"""`python -m tests.lab.policies`: compare the batching policies under random traffic.

--seeds N         runs of each policy and row (5)
--only TEXT       only rows whose name contains TEXT
--markdown FILE   also write the table into FILE, between its markers
"""

import argparse
import sys
from pathlib import Path

from tests.lab.policies.page import insert
from tests.lab.policies.table import ROWS, heading, markdown, measure_all

SECTION = "simulated"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.policies", description="Compare the batching policies.")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="runs of each, with seeds 1 to N (5)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name has this")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="put the table into this file, between its markers"
    )
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if options.only in row.name]
    seeds = range(1, options.seeds + 1)
    if not rows or not seeds:
        parser.error("nothing to run")
    results = []
    for row, cells in measure_all(rows, seeds):
        print(f"{row.name}: {', '.join(f'{cell.policy} {cell.text(row)}' for cell in cells)}", flush=True)
        results.append((row, cells))
    table = "\n".join(markdown(results))
    print(f"{heading(seeds)}\n\n{table}")
    if options.markdown:
        insert(options.markdown, SECTION, f"{heading(seeds)}\n\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
