"""The same work without a server: images a second in a plain loop, as a process of its own.

`python -m tests.lab.benchmarks.workloads.in_process eager|handler NAME SECONDS` prints one number.

    eager      what peers/apps runs: torchvision's documentation, float32, one batch after the other
    handler    our handler as a worker has it, with the settings of its archive, batch after batch
"""

import json
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.lab.benchmarks import models
from tests.lab.benchmarks.peers.apps.models_of_apps import load_resnet

BATCH = 8


def eager(name: str, folder: Path) -> Callable[[], object]:
    run = load_resnet(name, os.fspath(models.MODELS / f"{name}.pth"))
    bodies = [(models.MODELS / "photo.jpg").read_bytes()] * BATCH
    return lambda: run(bodies)


def handler(name: str, folder: Path) -> Callable[[], object]:
    from tsctl.handlers import wire
    from tsctl.handlers.runtime.runtime import Runtime

    (folder / "store").mkdir()
    mar = models.archive(models.resnet(name), folder / "store", BATCH, 0.01)
    with zipfile.ZipFile(mar) as archive:
        archive.extractall(folder / "model")
    manifest = json.loads((folder / "model" / "MAR-INF" / "MANIFEST.json").read_text())
    sys.path.insert(0, str(folder / "model"))
    load = wire.Load(
        model_name=name, model_version="1.0", model_dir=str(folder / "model"), handler="image_classifier",
        manifest=manifest, batch_size=BATCH, threads=len(os.sched_getaffinity(0)),
    )  # fmt: skip
    runtime = Runtime.load(load)
    body = (models.MODELS / "photo.jpg").read_bytes()
    rows = [wire.Row(str(index), [], [("body", "", memoryview(body))]) for index in range(BATCH)]

    def run() -> object:
        answers = runtime.run(rows)
        assert all(answer.status == 200 for answer in answers), answers
        return answers

    return run


def main(kind: str, name: str, seconds: float) -> None:
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    with tempfile.TemporaryDirectory() as folder:
        run = (handler if kind == "handler" else eager)(name, Path(folder))
        for _ in range(2):
            run()
        batches, began = 0, time.monotonic()
        while time.monotonic() < began + seconds:
            run()
            batches += 1
        print(batches * BATCH / (time.monotonic() - began))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
