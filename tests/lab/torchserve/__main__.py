"""Try what TorchServe's repository documents: `python -m tests.lab.torchserve [--only WORD] [--write] [PART…]`.

    start-lines      each `torchserve --start …` of its pages and scripts
    model-configs    each model-config.yaml
    configurations   each config.properties, with a real daemon

`TORCHSERVE_CHECKOUT` names a checkout of pytorch/serve. Exits with 1 if a case fails by a defect of tsctl.
"""

import argparse
import sys

from tests.environments import Missing
from tests.lab.torchserve import configurations, model_configs, report, start_lines
from tests.lab.torchserve.checkout import checkout, commit

PARTS = {
    "start-lines": start_lines.judge,
    "model-configs": model_configs.judge,
    "configurations": configurations.judge,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m tests.lab.torchserve")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name contains the word")
    parser.add_argument("--write", action="store_true", help="put the counts into docs/torchserve.md")
    given = parser.parse_args(arguments)
    if unknown := set(given.parts) - PARTS.keys():
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    if given.write and (given.only or given.parts):
        parser.error("--write needs the counts of all cases: leave out --only and the parts")
    try:
        root = checkout()
    except Missing as error:
        print(f"skipped: {error}")
        return 0
    judged = {
        part: list(judge(root, given.only)) for part, judge in PARTS.items() if not given.parts or part in given.parts
    }
    print(report.table(judged))
    if given.write:
        report.write(report.EXAMPLES, judged, commit(root))
    return 1 if report.failed(judged) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
