"""`python -m tests.lab heap [MODEL …]`: what real models' batches cost with malloc set as in workers, and otherwise.

A process for each line, on one thread: page faults of a batch, CPU ms of a request, the peak, and what is left at rest.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.lab.real import models, packages
from tests.places import ROOT
from tsctl.handlers.own_process import give_memory_back, malloc_variables

NAMES = ("minilm", "photographs", "pitch", "speakers")
SIZES = ((1, 1), (8, 8), (32, 32), (1, 32))
FIRST, MEASURED = 3, 12  # batches
LONG = 15.0  # seconds of CPU, after which no more batches are measured
RULES: dict[str, dict[str, str]] = {
    "glibc's defaults": {},
    "thresholds of 32 MiB": {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**26)},
    "thresholds of 1 GiB": {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)},
    "a worker's": malloc_variables({}),
}


def predict_of(name: str, folder: Path) -> Any:
    """Return a function that answers a batch of bodies, as a worker does."""
    readers: dict[str, Callable[[bytes], Any]] = {"minilm": bytes.decode, "photographs": models.image}
    read = readers.get(name, models.sound)
    if name == "minilm":
        models.write_minilm(folder)
    predict = models.load(folder / "embed.py" if name == "minilm" else models.HANDLERS / f"{name}.py").predict
    return lambda bodies: predict([read(body) for body in bodies])


def measure(name: str, least: int, most: int) -> str:
    """Run batches in this process."""
    packages.install(name, models.MODELS[name].packages)
    with tempfile.TemporaryDirectory() as folder:
        predict, bodies, drawn = predict_of(name, Path(folder)), models.MODELS[name].bodies(), random.Random(7)
    faults, cpu, requests, measured = 0, 0.0, 0, -FIRST
    while measured < MEASURED and cpu < LONG:
        batch = [drawn.choice(bodies) for _ in range(drawn.randint(least, most))]
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
        predict(batch)
        if measured >= 0:
            cpu, requests = cpu + time.process_time() - began, requests + len(batch)
            faults += resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        measured += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    give_memory_back()
    left = int(Path("/proc/self/statm").read_text().split()[1]) >> 8
    return f"{faults // measured} faults, {cpu / requests * 1000:.1f} ms, {peak} MiB, {left} MiB at rest"


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--measure"]:
        print(measure(arguments[1], *json.loads(arguments[2])))
        return 0
    for name in arguments or NAMES:
        for sizes in SIZES:
            for rule, variables in RULES.items():
                command = [sys.executable, "-m", "tests.lab.real.heap", "--measure", name, json.dumps(sizes)]
                environment = os.environ | packages.environment() | {"OMP_NUM_THREADS": "1"} | variables
                ran = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                print(f"{name}, batches of {sizes}, {rule}: {ran.stdout.splitlines()[-1]}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
