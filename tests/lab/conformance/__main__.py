"""Hold our daemon against TorchServe's recorded answers, and write docs/torchserve.md.

    python -m tests.lab conformance, or python -m tests.lab.conformance [GROUP…]

TorchServe 0.12.0 is its last release, so that what it answers does not change: what recorded it, for which a new case
needs Java 17, is read with `git show 8b965de0:tests/lab/conformance/torchserve.py`. The exit code is 1 if an answer of
ours is wrong; groups of cases print only what is.
"""

import sys
import tempfile
from pathlib import Path

from tests.lab.conformance import report
from tests.lab.conformance.case import GROUPS, by_variant
from tests.lab.conformance.compare import Judgement, Verdict
from tests.lab.conformance.side import our_daemon


def main(arguments: list[str]) -> int:
    all_names = {group.name for group in GROUPS}
    names = set(arguments) or all_names
    if unknown := names - all_names:
        print(f"error: no group of cases is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    judged: dict[str, dict[str, Judgement]] = {}
    for variant, groups in by_variant(names):
        with tempfile.TemporaryDirectory() as folder, our_daemon(Path(folder), variant) as side:
            judged |= {group.name: side.replay(group) for group in groups}
    print(report.summary(judged))
    if names == all_names:
        report.PAGE.write_text(report.page(judged))
        print(f"wrote {report.PAGE}")
    return int(any(each.verdict is Verdict.WRONG for group in judged.values() for each in group.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
