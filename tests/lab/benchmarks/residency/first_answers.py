"""How soon an unloaded model answers: `python -m tests.lab.benchmarks.residency.first_answers [ROUNDS]`.

Prints the median and the longest first answer of a small model and of ResNet-152 (random weights), by what is left of
them: the template that keeps the weights mapped; or only the archive's files in the page cache, with torch imported
by the first template, as for every model; beside an answer of a loaded worker.
"""

import statistics
import sys
import time
from functools import partial

from tests.e2e.served import Served, eventually
from tests.lab.benchmarks.starting import ask, photograph, place, seconds

IDLE = "2s"
BODIES = {"small": b"x", "resnet": photograph()}


def residence(served: Served, model: str) -> str:
    return str(served.describe(model)["tsctl"]["residence"]["state"])


def wait_until_unloaded(served: Served, model: str) -> None:
    eventually(lambda: residence(served, model) == "unloaded", f"{model} is unloaded")
    time.sleep(0.2)  # its workers' memory is given back


def measure(rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each kind of answer."""
    found: dict[str, list[float]] = {}
    with place(template=True) as served:
        served.start("--model-keep-alive", IDLE)
        for model, body in BODIES.items():
            served.tsctl("register", f"{model}.mar", "--loading", "on_demand")
            first = partial(ask, served, model, body)
            found[f"{model}: the very first answer, with the templates to make"] = [seconds(first)]
            for _ in range(rounds):
                found.setdefault(f"{model}: loaded", []).append(seconds(first))
                wait_until_unloaded(served, model)
                found.setdefault(f"{model}: unloaded, its template warm", []).append(seconds(first))
            for _ in range(rounds):
                wait_until_unloaded(served, model)
                time.sleep(2.5)  # the template stays as long as the keep-alive
                found.setdefault(f"{model}: unloaded, its template gone", []).append(seconds(first))
    return found


def main(rounds: int) -> None:
    for name, times in measure(rounds).items():
        print(f"{name:60} {statistics.median(times):8.3f} s   longest {max(times):.3f} s   of {len(times)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 7)
