"""`python -m tests.lab.gpu`: the tests of handlers on a GPU, then the benchmark, then docs/benchmarks-gpu.md.

    [--device cuda:0] [--only tests|benchmark] [--sources] [--quick]

Both run on the compiled modules of a wheel, which is built first; `--sources` takes the sources, for a machine that
cannot build one. Needs no installation: an environment with the packages that pyproject.toml names is enough.

Exit codes: 0 done, 1 a test failed, 2 there is no such device.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import torch

from tests.compiled import COMPILED, run_compiled
from tests.lab.benchmarks.results import machine
from tests.lab.gpu import bound, page, rounds, tests
from tests.lab.gpu.device import CPU, refusal, stop_on_term
from tests.lab.gpu.served import doctor
from tests.places import ROOT

PAGE = ROOT / "docs" / "benchmarks-gpu.md"
TRIED = ROOT / ".bench" / "benchmarks-gpu-tried.md"  # ignored by git: figures of a CPU are no figures of a GPU
NETWORK, SMALL = "resnet50", "resnet18"


def benchmark(device: str, plan: rounds.Plan, tested: tests.Outcome | None) -> str:
    """Measure, and return the page."""
    network = SMALL if device == CPU else NETWORK
    began = time.monotonic()
    limit = None
    if device != CPU:
        try:
            limit = bound.measure(network, device)
            print(page.bounds(limit), flush=True)
        except RuntimeError as error:  # no reason to measure nothing else
            print(f"the bound was not measured: {error}", file=sys.stderr)
    measured = [rounds.measure(network, device, batch, plan) for batch in rounds.BATCHES]
    facts = {
        "device": device,
        "GPU": "" if device == CPU else torch.cuda.get_device_name(device),
        "`tsctl doctor`": doctor(),
        "network": network,
        "modules": "compiled" if COMPILED in os.environ else "sources",
        **machine(),
        "measured in": f"{time.monotonic() - began:.0f} s",
    }
    return page.page(facts, measured, tested, limit)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.gpu", description="Test and measure on a GPU.")
    parser.add_argument("--device", default="cuda:0", help="`cuda:0`, or `cpu` to try it")
    parser.add_argument("--only", choices=["tests", "benchmark"], help="one part")
    parser.add_argument("--sources", action="store_true", help="run the sources, not the compiled modules")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it runs")
    parser.add_argument("--page", type=Path, help="where the page is written")
    given = parser.parse_args(arguments)
    out: Path = given.page or (TRIED if given.device == CPU else PAGE)
    if reason := refusal(given.device):
        print(reason, file=sys.stderr)
        return 2
    if not given.sources and COMPILED not in os.environ:
        return run_compiled("tests.lab.gpu", [*arguments, "--page", out])
    # For the processes that are started: what is not installed is found here.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    tested = None if given.only == "benchmark" else tests.run(given.device)
    if given.only != "tests":
        text = benchmark(given.device, rounds.QUICK if given.quick else rounds.Plan(), tested)
        out.parent.mkdir(exist_ok=True)
        out.write_text(text)
        print(f"{text}\nwrote {out}")
    return 1 if tested and not tested.good else 0


if __name__ == "__main__":
    stop_on_term()
    sys.exit(main(sys.argv[1:]))
