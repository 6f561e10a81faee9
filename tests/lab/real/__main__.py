"""Serve real models, and compare each answer with the function in this process: `python -m tests.lab real [MODEL …]`.

A model whose packages cannot be installed is named with the reason, and the others are served. Exit code 1: an answer
was wrong; 3: of the models that were named, none could be had.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from pathlib import Path

from tests.compiled import COMPILED, run_compiled
from tests.e2e.served import Served
from tests.environments import Missing
from tests.lab.conformance.compare import unequal_values
from tests.lab.real import bar, packages
from tests.lab.real.models import MODELS, RealModel
from tests.lab.real.streams import options

NONE = 3
TIMES = 3  # that each body is sent while others wait, so that batches are mixed
TOGETHER = 16
CLOSE = 2e-3  # of a number, or of 1 where it is smaller: a batch adds up in another order than one row does


def compare(served: Served, name: str, model: RealModel) -> tuple[int, list[str]]:
    """Register a model, ask it about each body alone and in batches, and unregister it.

    Returns:
        How many answers there were, and what was wrong with each that was.
    """
    folder = served.folder / name
    folder.mkdir()
    arguments = model.serve(served, folder)
    done = served.run("register", *arguments, "--name", name, patience=600)
    assert done.returncode == 0, done.stderr
    answer = model.function(folder)
    bodies = model.bodies()
    expected = [json.loads(json.dumps(answer(body))) for body in bodies]

    def ask(number: int) -> list[str]:
        target, body = model.question(bodies[number])
        got = served.ask(target.format(name), body)
        if got.status != 200:
            return [f"{name}, body {number}: status {got.status}: {got.body[:300].decode(errors='replace')}"]
        wrong = unequal_values("the answer", expected[number], model.answer(got.body), CLOSE, CLOSE)
        return [f"{name}, body {number}: {where}: {its!r:.200}, expected {right!r:.200}" for where, right, its in wrong]

    numbers = range(len(bodies))
    wrong = [each for number in numbers for each in ask(number)]
    with ThreadPoolExecutor(TOGETHER) as pool:
        for found in pool.map(ask, chain.from_iterable(repeat(numbers, TIMES))):
            wrong += found
    served.tsctl("unregister", name)
    return len(bodies) * (1 + TIMES), wrong


def serve(served: Served, names: Sequence[str], fetch: bool) -> int:
    """Serve the models in turn; return the exit code."""
    had, wrong = 0, 0
    for name in names:
        began = time.monotonic()
        try:
            packages.install(name, MODELS[name].packages, fetch)
            model = MODELS[name]
            answers, found = model.compare(served, name) if model.compare else compare(served, name, model)
        except Missing as missing:
            print(f"{name}: not served: {missing}", flush=True)
            continue
        except Exception:  # noqa: BLE001 - the others are served all the same
            traceback.print_exc()
            answers, found = 0, [f"{name}: see above"]
        had += 1
        wrong += bool(found)
        print(f"{name}: {answers} answers, {len(found)} wrong, {time.monotonic() - began:.1f} s", flush=True)
        print(*found[:20], sep="\n", end="\n" if found else "", flush=True)
    return 1 if wrong else 0 if had else NONE


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab real", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all, by default")
    parser.add_argument("--installed", action="store_true", help="only models whose packages are there: install none")
    parser.add_argument("--bar", action="store_true", help="measure `auto` beside the best constant batch size")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="with --bar: put the table into this page")
    parser.add_argument("--seconds", type=float, default=4.0, help="with --bar: of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="with --bar: of the last comparison")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.names) - MODELS.keys():
        parser.error(f"no such model: {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    if chosen.bar and COMPILED not in os.environ:  # what is installed is compared
        page = ["--markdown", chosen.markdown.absolute()] if chosen.markdown else []
        return run_compiled("tests.lab.real", [*arguments, *page])
    with tempfile.TemporaryDirectory(prefix="tsctl-real-") as folder:
        served = Served(Path(folder))
        served.patience = 600
        served.environment |= packages.environment()
        served.start(*options())
        try:
            if not chosen.bar:
                return serve(served, chosen.names or list(MODELS), not chosen.installed)
            names = chosen.names or bar.NAMES
            for name in names:
                packages.install(name, MODELS[name].packages)
            return int(bar.measure(served, names, chosen.seconds, chosen.rounds, chosen.markdown) > 0)
        finally:
            served.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
