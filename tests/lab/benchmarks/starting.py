"""How long starts take, and what workers share: `python -m tests.lab.benchmarks.starting [--without] [ROUNDS]`.

Prints, as medians: how soon the daemon listens, how soon a small model answers, beside an `import torch`
in the same round; how soon a further worker answers, and the replacement of one that is killed; and
the memory (PSS) of all processes for one and for four workers of ResNet-152 after batches of eight.
With `--without`, workers are exec'd: no templates.
"""

import io
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
import torchvision
from PIL import Image

from daemon.marfile import Packing, write_archive
from tests.e2e.served import Served

SMALL = """
import torch
from ts.torch_handler.base_handler import BaseHandler

class Small(BaseHandler):
    def initialize(self, context):
        self.model = torch.nn.Linear(4, 2)

    def handle(self, data, context):
        return self.model(torch.ones(len(data), 4)).tolist()
"""
RESNET = """
from torchvision.models.resnet import Bottleneck, ResNet

class ResNet152(ResNet):
    def __init__(self):
        super().__init__(Bottleneck, [3, 8, 36, 3])
"""
BATCH = 8


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


@contextmanager
def place(template: bool) -> Iterator[Served]:
    """A place for a daemon, with both archives in its store."""
    with tempfile.TemporaryDirectory() as name:
        served = Served(Path(name))
        served.environment["TSCTL_TEMPLATE"] = str(template).lower()
        served.patience = 240.0
        (served.folder / "small.py").write_text(SMALL)
        (served.folder / "resnet.py").write_text(RESNET)
        torch.save(torchvision.models.resnet152().state_dict(), served.folder / "resnet.pth")
        write_archive(Packing(model_name="small", version="1.0", handler=str(served.folder / "small.py")), served.store)
        resnet = Packing(
            model_name="resnet",
            version="1.0",
            handler="image_classifier",
            model_file=served.folder / "resnet.py",
            serialized_file=served.folder / "resnet.pth",
        )
        write_archive(resnet, served.store)
        try:
            yield served
        finally:
            served.stop()


def ask(served: Served, model: str, body: bytes) -> None:
    answer = served.ask(f"/predictions/{model}", body)
    assert answer.status == 200, answer.body


def ask_until_answered(served: Served, model: str, body: bytes) -> None:
    """Ask again while there is no worker; one that is just being killed may still be given a request."""
    while served.ask(f"/predictions/{model}", body).status != 200:
        time.sleep(0.005)


def worker_pid(served: Served, model: str) -> int:
    return int(served.describe(model)["workers"][0]["pid"])


def starts(served: Served) -> dict[str, float]:
    """One round: every start once."""
    environment = served.environment | {"TSCTL_MODELS": "small.mar", "TSCTL_RESTORE": "false"}
    measured = {"import torch": seconds(lambda: subprocess.run([sys.executable, "-c", "import torch"], check=True))}
    before, served.environment = served.environment, environment
    began = time.perf_counter()
    served.run("start")
    measured["the daemon listens"] = time.perf_counter() - began
    served.note_address()
    ask_until_answered(served, "small", b"x")
    measured["the first answer of a small model"] = time.perf_counter() - began
    for model, body in (("small", b"x"), ("resnet", photograph())):
        if model == "small":
            served.tsctl("scale", model, "--workers", "1")
        else:
            measured["the first worker of ResNet-152"] = seconds(lambda: served.tsctl("register", "resnet.mar"))
            ask(served, model, body)
        usual = seconds(partial(ask, served, model, body))
        os.kill(worker_pid(served, model), signal.SIGKILL)
        replaced = seconds(partial(ask_until_answered, served, model, body))
        measured[f"a killed worker replaced, {model}"] = replaced - usual  # both hold one prediction
        scale = partial(served.tsctl, "scale", model, "--workers", "2")
        measured[f"a further worker, {model}"] = seconds(scale) - seconds(scale)  # the second has nothing to do
    served.stop()
    served.environment = before
    return measured


def photograph() -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((500, 375), 50).convert("RGB").save(buffer, "JPEG")
    return buffer.getvalue()


def pss(served: Served) -> tuple[int, int]:
    """Bytes of all processes in the daemon's care, and how many they are."""
    total = count = 0
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == served.pid:
                rollup = (directory / "smaps_rollup").read_text()
                total += int(rollup.partition("\nPss:")[2].split()[0]) * 1024
                count += 1
        except OSError:
            continue
    return total, count


def memory(served: Served, workers: int, body: bytes) -> tuple[int, int, int]:
    """Start so many workers of ResNet-152, give each of them batches of eight, and weigh all.

    Returns:
        Bytes, bytes when they have been idle for two seconds, processes.
    """
    served.start("--no-restore")
    served.tsctl("register", "resnet.mar", "--batch-size", str(BATCH), "--max-delay", "50", "--workers", str(workers))
    for _ in range(2):
        askers = [threading.Thread(target=ask, args=(served, "resnet", body)) for _ in range(BATCH * workers)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
    busy, _ = pss(served)
    time.sleep(2)
    idle, count = pss(served)
    served.stop()
    return busy, idle, count


def main(arguments: list[str]) -> None:
    template = "--without" not in arguments
    rounds = int(next((each for each in arguments if each.isdigit()), "3"))
    with place(template) as served:
        measured = [starts(served) for _ in range(rounds)]
        for name in measured[0]:
            print(f"{name:45} {statistics.median(each[name] for each in measured):6.2f} s")
        differences = [each["the first answer of a small model"] - each["import torch"] for each in measured]
        print(f"{'first answer, less import torch':45} {statistics.median(differences):6.2f} s")
        weighed = {workers: memory(served, workers, photograph()) for workers in (1, 4)}
        for workers, (busy, idle, count) in weighed.items():
            what = f"ResNet-152, {workers} workers, {count} processes"
            print(f"{what:45} {busy / 2**20:6.0f} MiB, idle {idle / 2**20:.0f} MiB")
        one, four = weighed[1], weighed[4]
        print(f"{'four workers ÷ one':45} {four[0] / one[0]:6.2f}, idle {four[1] / one[1]:.2f}")
        print(f"{'four workers ÷ one that is idle':45} {four[0] / one[1]:6.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
