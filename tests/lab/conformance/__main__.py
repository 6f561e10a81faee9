"""Compare this daemon with the real TorchServe: `python -m tests.lab.conformance [record|replay] [GROUP…]`.

    record   run TorchServe, send it the cases, keep its answers in cases/
    replay   run our daemon, send it the cases, compare with what is kept, write docs/torchserve.md

Without a word it does both, and exits with 1 if something is wrong.
"""

import sys
import tempfile
from pathlib import Path

from tests.environments import Missing
from tests.lab.conformance import report
from tests.lab.conformance.case import GROUPS, by_variant, write
from tests.lab.conformance.compare import Judgement, Verdict
from tests.lab.conformance.environment import environment
from tests.lab.conformance.models import pack
from tests.lab.conformance.ours import our_daemon
from tests.lab.conformance.torchserve import torchserve


def record(names: set[str]) -> None:
    """Send the cases to TorchServe and keep its answers."""
    python = environment()
    for variant, groups in by_variant(names):
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            store = folder / "store"
            store.mkdir()
            pack(store)
            with torchserve(python, folder, store, variant) as side:
                for group in groups:
                    print(f"recording {group.name}: {len(group.cases)} cases", flush=True)
                    write(group.name, side.ask_all(group, group.cases))


def compare(names: set[str]) -> dict[str, dict[str, Judgement]]:
    """Send the cases to our daemon; judgements by group and case."""
    judged: dict[str, dict[str, Judgement]] = {}
    for variant, groups in by_variant(names):
        with tempfile.TemporaryDirectory() as folder, our_daemon(Path(folder), variant) as side:
            judged |= {group.name: side.replay(group) for group in groups}
    return judged


def main(arguments: list[str]) -> int:
    words = [word for word in arguments if word in ("record", "replay")] or ["record", "replay"]
    names = set(arguments) - {"record", "replay"} or {group.name for group in GROUPS}
    if unknown := names - {group.name for group in GROUPS}:
        print(f"error: no group of cases is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if "record" in words:
        try:
            record(names)
        except Missing as error:
            print(f"error: {error}", file=sys.stderr)
            return 3
    if "replay" not in words:
        return 0
    judged = compare(names)
    print(report.summary(judged))
    if names == {group.name for group in GROUPS}:
        report.PAGE.write_text(report.page(judged))
        print(f"wrote {report.PAGE}")
    wrong = any(each.verdict is Verdict.WRONG for group in judged.values() for each in group.values())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
