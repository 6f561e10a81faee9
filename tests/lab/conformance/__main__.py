"""Hold our daemon against TorchServe's recorded answers, and write docs/torchserve.md.

    python -m tests.lab conformance, or python -m tests.lab.conformance [GROUP…]
    python -m tests.lab conformance record [GROUP…]      runs TorchServe for cases that have no answer yet; needs Java

TorchServe 0.12.0 is its last release, so that what it answers does not change. The exit code is 1 if an answer of ours
is wrong; groups of cases print only what is.
"""

import sys
import tempfile
from pathlib import Path

from tests.environments import Missing
from tests.lab.benchmarks.peers.peer import DidNotStart
from tests.lab.conformance import report
from tests.lab.conformance.case import GROUPS, by_variant
from tests.lab.conformance.compare import Judgement, Verdict
from tests.lab.conformance.ours import our_daemon
from tests.lab.conformance.torchserve import real_torchserve, record


def main(arguments: list[str]) -> int:
    all_names = {group.name for group in GROUPS}
    recording = arguments[:1] == ["record"]
    names = set(arguments[recording:]) or all_names
    if unknown := names - all_names:
        print(f"error: no group of cases is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if recording:
        return _record(names)
    judged: dict[str, dict[str, Judgement]] = {}
    for variant, groups in by_variant(names):
        with tempfile.TemporaryDirectory() as folder, our_daemon(Path(folder), variant) as side:
            judged |= {group.name: side.replay(group) for group in groups}
    print(report.summary(judged))
    if names == all_names:
        report.PAGE.write_text(report.page(judged))
        print(f"wrote {report.PAGE}")
    return int(any(each.verdict is Verdict.WRONG for group in judged.values() for each in group.values()))


def _record(names: set[str]) -> int:
    wanted = {group.name for group in GROUPS for case in group.cases for step in case.steps if step.recorded is None}
    for variant, groups in by_variant(names & wanted):
        try:
            with tempfile.TemporaryDirectory() as folder, real_torchserve(Path(folder), variant) as side:
                for group in groups:
                    print(f"{group.name}: {record(group, side)} cases recorded", flush=True)
        except (Missing, DidNotStart) as error:
            print(f"error: {error}", file=sys.stderr)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
