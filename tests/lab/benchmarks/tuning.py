"""How near `tsctl tune` comes: it predicts, its settings are applied, and the same load is measured.

python -m tests.lab.benchmarks.tuning [--model linear|convolutions] [--clients 8] [--seconds 6] [--settings 3]
[--rounds 1]

A real daemon serves the model; clients in a closed loop are its traffic. The daemon's recording of them is what the
prediction is for. Printed are, for the setting that is recommended, for others of the frontier and for the one
before, the predicted values, those measured afterwards (twice, in turns: the mean), and the ratios. A star:
`tsctl tune` has tried the setting; others were only simulated.

A model's own speed may change from one minute to the next (that of `convolutions`, alone and without a daemon, by
± 20 % where this was written), so what counts is the median of several rounds, each of which tunes anew.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.e2e.served import Served
from tests.lab.benchmarks.clients import Seen, drive

BODIES = {"linear": b"x", "convolutions": bytes(3 * 64 * 64)}
ENOUGH = 250  # requests, to be replayed
COLUMNS = ("throughput", "p50", "p99")


def tune(served: Served, model: str, body: bytes, most: int) -> Any:
    (served.folder / "input").write_bytes(body)
    done = served.run("tune", model, "--input", "input", "--json", "--max-batch-size", str(most), patience=600.0)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def answered(served: Served, model: str) -> int:
    sizes = served.describe(model)["tsctl"]["batching"]["sizes"]
    return sum(int(size) * count for size, count in sizes.items())


def apply(served: Served, model: str, point: dict[str, Any]) -> None:
    served.tsctl(
        "set", model, "--batch-size", str(point["batchSize"]), "--max-delay", str(point["maxBatchDelay"]),
        "--batching", point["batching"],
    )  # fmt: skip
    served.tsctl("scale", model, "--workers", str(point["workers"]))


def mean(seen: list[Seen]) -> Seen:
    """Of what was seen in turns; all errors."""
    rates, halves, ends = ([getattr(each, column) for each in seen] for column in COLUMNS)
    return Seen(statistics.fmean(rates), statistics.fmean(halves), statistics.fmean(ends), sum(s.errors for s in seen))


def show(name: str, point: dict[str, Any], seen: Seen) -> list[float]:
    """Print a row; give measured by predicted."""
    how = f"{point['workers']} × {point['threads']}, batch {point['batchSize']}, {point['maxBatchDelay']:g} ms"
    print(f"{name:12}{how + ', ' + point['batching'] + (' *' if point['measured'] else ''):36}", end="")
    ratios = []
    for column in COLUMNS:
        predicted, measured = point[column], getattr(seen, column)
        scale, digits = (1, 0) if column == "throughput" else (1000, 1)
        ratios.append(measured / predicted)
        print(f"{predicted * scale:>10.{digits}f}{measured * scale:>10.{digits}f}{ratios[-1]:>7.2f}", end="")
    print(f"   {seen.errors} errors" if seen.errors else "", flush=True)
    return ratios


def compare(served: Served, model: str, clients: int, seconds: float, settings: int, rounds: int) -> None:
    body = BODIES[model]
    served.register(model)
    ratios: dict[str, list[list[float]]] = {}
    drive(served, model, clients, seconds, body)
    while answered(served, model) < ENOUGH:  # of a slow model on a slow machine
        drive(served, model, clients, seconds, body)
    for _ in range(rounds):
        began = time.monotonic()
        found = tune(served, model, body, most=16)
        print(f"\n{model}: {found['load']['text']}; tuned in {time.monotonic() - began:.0f} s")
        columns = "".join(f"{name:>10}{'measured':>10}{'ratio':>7}" for name in ("req/s", "p50 ms", "p99 ms"))
        print(f"{'':48}{columns}")
        best = found["frontier"][found["recommended"]]
        others = [each for each in found["frontier"] if each is not best][: settings - 1]
        rows = [("recommended", best), *(("other", each) for each in others), ("before", found["now"])]
        turns: list[list[Seen]] = [[] for _ in rows]
        # There and back, as it is tuned. What there was comes last: its traffic is what the next round is tuned for.
        for place in [*reversed(range(len(rows))), *range(len(rows))]:
            apply(served, model, rows[place][1])
            turns[place].append(drive(served, model, clients, seconds, body))
        for (name, point), seen in zip(rows, turns, strict=True):
            ratios.setdefault(name, []).append(show(name, point, mean(seen)))
    for name, each in ratios.items() if rounds > 1 else ():
        middle = [statistics.median(column) for column in zip(*each, strict=True)]
        print(f"{f'{name}, median':48}" + "".join(f"{ratio:>27.2f}" for ratio in middle))
    served.tsctl("unregister", model)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare what tsctl tune predicts with what is measured.")
    parser.add_argument("--model", choices=BODIES, action="append")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--settings", type=int, default=3, help="of the frontier, the recommended one first")
    parser.add_argument("--rounds", type=int, default=1, help="of tuning and measuring")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tsctl-tuning-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            for model in given.model or BODIES:
                compare(served, model, given.clients, given.seconds, given.settings, given.rounds)
        finally:
            served.stop()


if __name__ == "__main__":
    main()
