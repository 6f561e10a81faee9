"""How close a served model comes to what its cores can do: `python -m tests.lab.benchmarks.pipelines`.

[--seconds N] [--rounds 3] [--connections 16] [CASE ...]

    limit     cores ÷ CPU seconds an image of decoding, preprocessing and inference
    loop      the handler batch after batch in a process of its own, as a worker has it, with the same compiled code
    served    the same model behind the daemon, with a client that keeps full batches waiting

Loop and daemon take turns within a round, and the limit is the loop's CPU in that very turn. The client runs on the
same cores, which the first ratio pays for: served ÷ limit, or served ÷ loop. The second does not: the CPU of the loop ÷
that of the daemon's own processes, for an image.

Both count whole batches: the loop until its last one ends, the daemon until its last answer. (Of a run cut off after
some seconds, half a batch is lost in the mean: 4 % of ResNet-152's images in five seconds.)
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.e2e.served import Served
from tests.lab.benchmarks import models
from tests.lab.benchmarks.measuring.processes import cpu_of

BATCH = 8
DELAY = 0.01  # seconds
ROOT = Path(__file__).parents[3]


class Case(NamedTuple):
    """A model with optimisations, and the least of a ratio that is wanted: of the limit, or of the loop.

    Attributes:
        seconds: of a turn, enough for some thirty batches: its first and last ones are not whole.
    """

    model: str
    optimize: str
    of: str
    goal: float
    seconds: float


CASES = {
    "resnet18": Case("resnet18", "bf16,compile", "limit", 0.90, 8.0),
    "resnet152": Case("resnet152", "bf16,compile", "limit", 0.95, 35.0),
    "default": Case("resnet18", "", "loop", 0.97, 8.0),
}


class Turn(NamedTuple):
    """Images a second; CPU seconds an image of the loop, of the daemon's processes, and of the client."""

    loop: float
    served: float
    loop_cpu: float
    served_cpu: float
    client_cpu: float

    def ratio(self, of: str, cores: int) -> float:
        return self.served / (cores / self.loop_cpu if of == "limit" else self.loop)


def run_loop(folder: str, optimize: str) -> None:
    """Load a model as a worker does; for each line of stdin run batches for so many seconds, and print two numbers."""
    import torch

    from handlers import wire
    from handlers.runtime.runtime import Runtime

    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(cores)
    sys.path.insert(0, folder)
    manifest = json.loads(Path(folder, "MAR-INF", "MANIFEST.json").read_text())
    load = wire.Load(
        model_name="m", model_version="1.0", model_dir=folder, handler="image_classifier",
        manifest=manifest, batch_size=BATCH, threads=cores,
    )  # fmt: skip
    runtime = Runtime.load(load)
    runtime.optimize(optimize.split(",") if optimize else None, Path(folder), BATCH)
    body = (models.MODELS / "photo.jpg").read_bytes()
    rows = [wire.Row(str(index), [], [("body", "", memoryview(body))]) for index in range(BATCH)]

    def run() -> None:
        assert all(answer.status == 200 for answer in runtime.run(rows))

    for _ in range(3):
        run()
    print("ready", flush=True)
    for line in sys.stdin:
        batches, began, cpu = 0, time.monotonic(), time.process_time()
        while time.monotonic() < began + float(line):
            run()
            batches += 1
        images = batches * BATCH
        print(images / (time.monotonic() - began), (time.process_time() - cpu) / images, flush=True)


@contextmanager
def loop(served: Served, case: Case) -> Iterator[Callable[[float], tuple[float, float]]]:
    """Start the loop on the daemon's unpacked archive; yield a function: seconds → images a second, CPU an image."""
    (folder,) = (served.folder / "state" / "models").iterdir()
    state = served.folder / "state"
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": str(state / "compiled"), "OPTIMIZE_TRIALS_DIR": str(state / "trials"),
        "GOMP_SPINCOUNT": "3000",
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.lab.benchmarks.pipelines", "--loop", str(folder), case.optimize]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline().strip() == "ready"

        def turn(seconds: float) -> tuple[float, float]:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{seconds}\n")
            process.stdin.flush()
            rate, cpu = map(float, process.stdout.readline().split())
            return rate, cpu

        yield turn
        process.stdin.close()


def serve(served: Served, seconds: float, connections: int) -> tuple[float, float, float]:
    """Return images a second, and CPU seconds an image of the daemon's processes and of the client."""
    ours, before = cpu_of(served.pid), os.times()
    load = ("-c", f"{connections}", "-t", f"{seconds}", "--json")
    found = json.loads(served.tsctl("bench", "m", str(models.MODELS / "photo.jpg"), *load))
    assert found["errors"] == 0 and set(found["statuses"]) == {"200"}, found
    after, images = os.times(), found["requests"]
    client = after.children_user + after.children_system - before.children_user - before.children_system
    return images / found["wholeSeconds"], (cpu_of(served.pid) - ours) / images, client / images


def measure(case: Case, rounds: int, seconds: float, connections: int) -> list[Turn]:
    with tempfile.TemporaryDirectory(prefix="tsctl-pipelines-") as folder:
        served = Served(Path(folder))
        served.environment["TSCTL_TEMPLATE"] = "true"
        served.environment["TSCTL_AUTO_OPTIMIZE"] = "never"
        served.start()
        try:
            further = f"optimize: [{case.optimize}]\n" if case.optimize else ""
            models.archive(models.resnet(case.model), served.store, BATCH, DELAY, further)
            served.tsctl("register", f"{case.model}.mar", "--model-name", "m", "--startup-timeout", "600")
            serve(served, 2.0, connections)
            time.sleep(0 if case.optimize else 15.0)  # defaults are timed five seconds after the first answer
            turns = []
            with loop(served, case) as run:
                for number in range(rounds):
                    if number % 2:
                        there, here = serve(served, seconds, connections), run(seconds)
                    else:
                        here, there = run(seconds), serve(served, seconds, connections)
                    turns.append(Turn(here[0], there[0], here[1], *there[1:]))
            return turns
        finally:
            served.stop()


def shown(name: str, case: Case, turns: list[Turn], cores: int) -> str:
    """Return the line of a case: medians of its turns, and of ratios within a turn."""

    def mid(number: Callable[[Turn], float]) -> float:
        return median(map(number, turns))

    rates = (mid(lambda turn: cores / turn.loop_cpu), mid(lambda turn: turn.loop), mid(lambda turn: turn.served))
    each = (turn_cpu * 1000 for turn_cpu in (
        mid(lambda turn: turn.loop_cpu), mid(lambda turn: turn.served_cpu), mid(lambda turn: turn.client_cpu)
    ))  # fmt: skip
    ratio, of_cpu = mid(lambda turn: turn.ratio(case.of, cores)), mid(lambda turn: turn.loop_cpu / turn.served_cpu)
    numbers = "".join(f"{rate:>9.1f}" for rate in rates)
    return (
        f"{name:12}{numbers}{ratio:>8.3f}  {case.of:5}  {case.goal:.2f} {of_cpu:>10.3f}  "
        f"{', '.join(f'{cpu:.1f}' for cpu in each)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--seconds", type=float, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=2 * BATCH)
    parser.add_argument("--loop", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.loop:
        run_loop(*given.loop)
        return
    import torch

    from handlers.optimize.bfloat16 import refusal

    cores = len(os.sched_getaffinity(0))
    cases = CASES
    if why := refusal(torch.device("cpu")):
        print(f"without bf16: {why}")
        cases = {name: case._replace(optimize=case.optimize.removeprefix("bf16,")) for name, case in CASES.items()}
    columns = f"{'case':12}{'limit/s':>9}{'loop/s':>9}{'served/s':>9}{'ratio':>8}  of     goal {'CPU ratio':>10}"
    print(f"{columns}  ms of CPU an image: loop, ours, client")
    for name in given.cases or cases:
        turns = measure(cases[name], given.rounds, given.seconds or cases[name].seconds, given.connections)
        print(shown(name, cases[name], turns, cores), flush=True)


if __name__ == "__main__":
    main()
