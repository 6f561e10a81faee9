"""Many registered models that are loaded on demand: `python -m tests.lab.benchmarks.residency.many [MODELS]`.

Registers models, a quarter at a time, and prints after each quarter what a registration takes (of the last 20, over
the control socket), what `GET /tsctl/status` (`tsctl ls`), a list, a description and `/metrics` take, what a request
to a model that is loaded for it takes, and the daemon's memory for one idle registered model (its private memory, by
the growth since the start). A time is the least of several.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.served import Served, eventually

HANDLER = """
def handle(data, context):
    return [b"done"] * len(data)
"""
ASKED = 20  # models of each quarter that are asked, spread over all of it
ROUNDS = 15


def milliseconds(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least of so many calls: what other programs on the machine add to one is not the daemon's."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times) * 1000


def private(pid: int) -> int:
    """Return the bytes that a process has for itself."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Private_Dirty:", "Private_Clean:")))


def register(served: Served, name: str, directory: Path) -> None:
    target = f"/models?url={directory}/handler.py&model_name={name}&loading=on_demand&keep_alive=1s"
    answer = served.command("POST", target)
    assert answer.status == 200, answer.body


def ask(served: Served, name: str) -> None:
    answer = served.ask(f"/predictions/{name}", b"x")
    assert answer.status == 200, answer.body


def nothing_loaded(served: Served) -> bool:
    return all(model["state"] == "unloaded" for model in served.status["models"])


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        served = Served(Path(name))
        directory = served.folder / "model"
        directory.mkdir()
        (directory / "handler.py").write_text(HANDLER)
        served.start()
        try:
            register(served, "first", directory)
            ask(served, "first")
            eventually(lambda: nothing_loaded(served), "the first model is unloaded")
            measure(served, directory, count)
        finally:
            served.stop()


def measure(served: Served, directory: Path, count: int) -> None:
    empty = private(served.pid)
    for target in ("/tsctl/status", "/models?limit=100", "/models/first"):
        served.command("GET", target)
    columns = ("register", "ls", "list", "describe", "metrics", "request", "kB each")
    print(f"{'models':>8}" + "".join(f"{column:>10}" for column in columns))
    done = 0
    for quarter in range(1, 5):
        names = [f"m{index:04}" for index in range(done, count * quarter // 4)]
        times = [milliseconds(lambda name=name: register(served, name, directory), 1) for name in names]  # type: ignore[misc]
        done = count * quarter // 4
        each = (private(served.pid) - empty) / done / 1000
        asked = [milliseconds(lambda name=name: ask(served, name), 1) for name in names[:: max(1, len(names) // ASKED)]]  # type: ignore[misc]
        eventually(lambda: nothing_loaded(served), "all are unloaded again")
        shown = [
            min(times[-20:]),
            milliseconds(lambda: served.command("GET", "/tsctl/status")),
            milliseconds(lambda: served.command("GET", "/models?limit=100")),
            milliseconds(lambda: served.command("GET", f"/models/{names[0]}")),  # noqa: B023
            milliseconds(lambda: served.ask("/metrics", method="GET")),
            min(asked),
        ]
        print(f"{done:8}" + "".join(f"{value:7.1f} ms" for value in shown) + f"{each:10.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 500)
