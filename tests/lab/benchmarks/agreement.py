"""Do `tsctl bench` and wrk agree? `python -m tests.lab.benchmarks.agreement [ROUNDS [MS ...]]`.

Both measure the same daemon in turn, with handlers that sleep from 2 ms on, batch after batch. What
should come out: rate, p50 and p99 within 5 % of each other; the table shows tsctl's by wrk's.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from daemon.marfile import Packing, write_archive
from tests.e2e.served import Served
from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.models import MODELS, constant

SLEEPS = (2, 5, 20)  # ms
CONNECTIONS = (1, 8, 32)
SECONDS = 4
FIGURES = ("rate", "p50", "p99")
_HANDLER = """\
import time


def handle(data, context):
    if data is None:
        return None
    time.sleep({sleep} / 1000)
    return [b"ok"] * len(data)
"""


def by_wrk(served: Served, model: str, body: Path, connections: int) -> dict[str, float]:
    found = wrk.run(f"{served.url}/predictions/{model}", body, {}, connections, SECONDS)
    return {"rate": found.rate, "p50": found.p50, "p99": found.p99}


def by_tsctl(served: Served, model: str, body: Path, connections: int) -> dict[str, float]:
    # Not `served.tsctl`: its output is for people, too, and a test's patience is short.
    command = [sys.executable, "-P", "-m", "tsctl.cli", "bench", model, str(body), "--json"]
    command += ["-c", str(connections), "-t", str(SECONDS)]
    done = subprocess.run(command, env=served.environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return {"rate": found["requestsPerSecond"], "p50": found["latency"]["p50"], "p99": found["latency"]["p99"]}


def register(served: Served, folder: Path, sleep: int) -> str:
    """Register a model that sleeps so many milliseconds a batch; return its name."""
    handler = folder / f"sleeps{sleep}.py"
    handler.write_text(_HANDLER.format(sleep=sleep))
    packing = Packing(model_name=handler.stem, version="1.0", handler=str(handler))
    served.tsctl("register", write_archive(packing, served.store).name, "--batch-size", "8", "--max-delay", "10")
    return handler.stem


def compare(served: Served, model: str, body: Path, connections: int, rounds: int) -> tuple[float, list[float]]:
    """Measure in turn; who is first changes from round to round.

    Returns:
        The median of wrk's rates; the medians of the rounds' ratios, by name.
    """
    rates, ratios = [], []
    for index in range(rounds):
        found = {
            measure: measure(served, model, body, connections)
            for measure in ((by_wrk, by_tsctl) if index % 2 == 0 else (by_tsctl, by_wrk))
        }
        rates.append(found[by_wrk]["rate"])
        ratios.append([found[by_tsctl][name] / found[by_wrk][name] for name in FIGURES])
    return statistics.median(rates), [statistics.median(each) for each in zip(*ratios, strict=True)]


def main(rounds: int, sleeps: Sequence[int]) -> None:
    constant(100)
    worst = 0.0
    print(f"medians of {rounds} rounds, tsctl bench ÷ wrk")
    print(f"{'handler':>8} {'clients':>8} {'wrk/s':>9}", *(f"{name:>7}" for name in FIGURES))
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        served.start()
        try:
            for sleep in sleeps:
                model = register(served, Path(folder), sleep)
                for connections in CONNECTIONS:
                    rate, ratios = compare(served, model, MODELS / "100-bytes", connections, rounds)
                    worst = max(worst, *(abs(ratio - 1) for ratio in ratios))
                    shown = " ".join(f"{ratio:7.3f}" for ratio in ratios)
                    print(f"{sleep:>5} ms {connections:>8} {rate:9.1f} {shown}", flush=True)
        finally:
            served.stop()
    print(f"within {worst:.1%}")


if __name__ == "__main__":
    asked = [int(argument) for argument in sys.argv[1:]]
    main(asked[0] if asked else 3, asked[1:] or SLEEPS)
