"""Do `tsctl bench` and wrk agree? `python -m tests.benchmarks.agreement [ROUNDS]`.

Both measure the same daemon in turn, with handlers that sleep from 2 ms on, batch after batch. What
should come out: rate, p50 and p99 within 5 % of each other; the table shows tsctl's by wrk's.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measuring import wrk
from tests.benchmarks.models import MODELS, constant
from tests.e2e.served import Served

SLEEPS = (2, 5, 20)  # ms
CONNECTIONS = (1, 8, 32)
SECONDS = 4
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


def main(rounds: int) -> None:
    constant(100)
    body = MODELS / "100-bytes"
    print(f"medians of {rounds} rounds, tsctl bench ÷ wrk")
    print(f"{'handler':>8} {'clients':>8} {'wrk/s':>9} {'rate':>7} {'p50':>7} {'p99':>7}")
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        served.start()
        try:
            for sleep in SLEEPS:
                handler = Path(folder) / f"sleeps{sleep}.py"
                handler.write_text(_HANDLER.format(sleep=sleep))
                model = handler.stem
                served.tsctl(
                    "archive",
                    "--model-name",
                    model,
                    "--version",
                    "1.0",
                    "--handler",
                    str(handler),
                    "--export-path",
                    str(served.store),
                )
                served.tsctl("register", f"{model}.mar", "--batch-size", "8", "--max-delay", "10")
                for connections in CONNECTIONS:
                    pairs = [
                        (by_wrk(served, model, body, connections), by_tsctl(served, model, body, connections))
                        for _ in range(rounds)
                    ]
                    ratios = {
                        name: statistics.median(ours[name] / theirs[name] for theirs, ours in pairs)
                        for name in ("rate", "p50", "p99")
                    }
                    rate = statistics.median(theirs["rate"] for theirs, _ in pairs)
                    shown = " ".join(f"{ratios[name]:7.3f}" for name in ("rate", "p50", "p99"))
                    print(f"{sleep:>5} ms {connections:>8} {rate:9.1f} {shown}", flush=True)
        finally:
            served.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
