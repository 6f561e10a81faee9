"""A shadow's delay of other requests where no core is free: `python -m tests.lab.benchmarks.shadow`.

[--seconds 2] [--rounds 15] [--model convolutions]

Two versions of a model that computes with all cores, the second a shadow of all requests in every other turn. Clients
are one and eight that ask again at once, and one that asks at random moments for a third of the capacity. Printed are
medians of the rounds, ratios with and without the shadow within a round, and how many of the copies ran.
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

from tests.e2e.served import Served

BODIES = {"convolutions": bytes(3 * 64 * 64), "sized": b"x"}
VERSIONS = ("1.0", "2.0")
SHARE = 1 / 3  # of the capacity, at random moments


class Round(NamedTuple):
    """Requests a second, seconds, and the copies that ran and that were dropped."""

    rate: float
    p50: float
    p99: float
    ran: int
    dropped: int


def route(served: Served, *, shadow: bool) -> None:
    asked = {"weights": "1.0=1"} | ({"shadow": "2.0", "allow_effects": "true"} if shadow else {})
    assert served.command("PUT", f"/models/m/route?{urlencode(asked)}").status == 200


def copies(served: Served) -> tuple[int, int]:
    """Return how many copies have run, and how many were dropped."""
    lines = served.ask("/metrics", method="GET").body.decode().splitlines()
    counts = [line.rpartition(" ") for line in lines if line.startswith("tsctl_shadow_answers_total{")]
    dropped = sum(int(float(number)) for name, _, number in counts if 'result="dropped"' in name)
    return sum(int(float(number)) for _, _, number in counts) - dropped, dropped


def measure(served: Served, seconds: float, load: tuple[str, ...], *, shadow: bool) -> Round:
    route(served, shadow=shadow)
    before = copies(served)
    found = json.loads(served.tsctl("bench", "m", "body", "--seconds", f"{seconds}", *load, "--json"))
    ran, dropped = (now - then for now, then in zip(copies(served), before, strict=True))
    assert found["errors"] == 0 and set(found["statuses"]) == {"200"}, found
    return Round(found["requestsPerSecond"], found["latency"]["p50"], found["latency"]["p99"], ran, dropped)


def load_of(name: str, found: dict[str, list[tuple[Round, Round]]]) -> tuple[str, ...]:
    """Return the flags of `tsctl bench`; the capacity is that of one client without a shadow, in the same round."""
    if name == "random moments":
        return ("--rate", f"{SHARE / found['one client'][-1][0].p50:.1f}")
    return ("-c", "1" if name == "one client" else "8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--model", choices=list(BODIES), default="convolutions")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tsctl-shadow-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            for version in VERSIONS:
                name = served.pack(given.model, "m", version)
                (served.store / name).rename(served.store / f"m-{version}.mar")
                served.tsctl("register", f"m-{version}.mar", "--workers", "1", "--batch-size", "1")
            (served.folder / "body").write_bytes(BODIES[given.model])
            names = ("one client", "eight clients", "random moments")
            found: dict[str, list[tuple[Round, Round]]] = {name: [] for name in names}
            for number in range(given.rounds):
                for name in names:
                    load = load_of(name, found)
                    turns = {turn: measure(served, given.seconds, load, shadow=turn) for turn in _order(number)}
                    found[name].append((turns[False], turns[True]))
        finally:
            served.stop()
    print(f"{'medians':16}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}   times with a shadow: rate, p50, p99, copies")
    for name, rounds in found.items():
        without = [median(each[0][column] for each in rounds) for column in range(3)]
        ratios = [median(each[1][column] / each[0][column] for each in rounds) for column in range(3)]
        ran, dropped = (sum(each[1][column] for each in rounds) for column in (3, 4))
        print(
            f"{name:16}{without[0]:>10.0f}{without[1] * 1000:>9.2f}{without[2] * 1000:>9.2f}"
            f"{'':24}{ratios[0]:.2f}  {ratios[1]:.2f}  {ratios[2]:.2f}  {ran} ran, {dropped} dropped"
        )


def _order(number: int) -> tuple[bool, bool]:
    """Return whether there is a shadow, in the order of a round: each is first in every other one."""
    return (False, True) if number % 2 == 0 else (True, False)


if __name__ == "__main__":
    main()
