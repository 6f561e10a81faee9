"""The demo: a trained network behind the daemon, batched and not, then ResNet-152 on a photograph.

Everything happens in a temporary folder, on a socket and a port of its own; at the end nothing is
left running, and the folder is gone.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import clients
import digits

sys.path.insert(0, str(Path(__file__).parent.parent / "resnet"))

import prepare

from tsctl import render

CLIENTS = 16
QUICKSTART = Path(prepare.__file__).parent


class Failed(Exception):
    """Something is not as the demo promises."""


class Tsctl:
    """The command line, with a daemon of its own in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._command = shutil.which("tsctl", path=str(Path(sys.executable).parent)) or "tsctl"
        settings = {"TSCTL_SOCKET": folder / "control.sock", "TSCTL_STATE_DIR": folder / "state"}
        self._environment = os.environ | {name: str(value) for name, value in settings.items()}

    def __call__(self, *arguments: str, quiet: bool = False) -> str:
        """Run a command, show it as typed, and give its output."""
        if not quiet:
            render.out.print(f"[bold]$[/bold] tsctl {' '.join(arguments)}", soft_wrap=True)
        done = subprocess.run(
            [self._command, *arguments], cwd=self.folder, env=self._environment, stdout=subprocess.PIPE, text=True
        )
        if done.returncode != 0:
            raise Failed(f"tsctl {arguments[0]} ended with exit code {done.returncode}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json", quiet=True))

    @property
    def address(self) -> str:
        """HOST:PORT of the predictions."""
        address: str = self.json("status")["inferenceAddress"]
        return address.removeprefix("http://")


def section(text: str) -> None:
    render.out.rule(f"[bold]{text}", align="left", style="dim")


def serve_digits(tsctl: Tsctl) -> None:
    """Steps 1 and 2: train, serve with batches of eight and of one, compare."""
    section("Train a network on 1 437 handwritten digits")
    data = digits.load()
    network = digits.train(data)
    digits.write_files(network, tsctl.folder)
    for name in ("digits_model.py", "digits_handler.py"):
        shutil.copy(digits.HERE / name, tsctl.folder)
    tsctl(
        "archive", "--model-name", "digits", "--version", "1.0", "--handler", "digits_handler.py",
        "--model-file", "digits_model.py", "--serialized-file", "digits.pth",
        "--extra-files", "index_to_name.json", "--export-path", "model_store",
    )  # fmt: skip

    section(f"Serve it, and send {digits.HELD_OUT} held-out digits from {CLIENTS} clients")
    tsctl("start", "--model-store", "model_store", "--inference-address", "127.0.0.1:0")
    expected = digits.top_classes(network, data.test_images)
    bodies = [digits.as_png(image) for image in data.test_images]
    batched, sizes = measure(tsctl, bodies, batch_size=8)
    single, _ = measure(tsctl, bodies, batch_size=1)

    answers = [next(iter(answer)) for answer in batched.answers]
    right = sum(answer == str(label) for answer, label in zip(answers, data.test_labels, strict=True))
    accuracy = right / len(answers)
    same = sum(answer == one for answer, one in zip(answers, expected, strict=True))
    section("What came back")
    render.facts([
        ("accuracy", f"{accuracy:.1%} ({right} of {len(answers)})"),
        ("same top answer as the model in this process", f"{same} of {len(answers)}"),
    ])  # fmt: skip
    render.heading("Batches of eight beside batches of one")
    render.table(
        ("BATCH SIZE", ">REQUESTS/S", ">P50", ">P95", ">P99"),
        [(label, f"{run.throughput:.0f}", *(f"{run.percentile(p) * 1000:.1f} ms" for p in (50, 95, 99)))
         for label, run in (("8", batched), ("1", single))],
    )  # fmt: skip
    render.heading("Batches by size, of those of at most eight")
    render.histogram([(size, count) for size, count in sizes.items()])
    if accuracy < 0.95 or same != len(answers):
        raise Failed("the answers are not those of the model")


def measure(tsctl: Tsctl, bodies: list[bytes], batch_size: int) -> tuple[clients.Run, dict[str, int]]:
    """Register the digits with a batch size, send everything, unregister; give the run and the batch sizes."""
    tsctl("register", "digits.mar", "--batch-size", str(batch_size), "--max-delay", "10")
    clients.send_all(tsctl.address, "/predictions/digits", bodies[:64], CLIENTS)  # warm up
    before = tsctl.json("describe", "digits")[0]["tsctl"]["batching"]["sizes"]
    run = clients.send_all(tsctl.address, "/predictions/digits", bodies, CLIENTS)
    after = tsctl.json("describe", "digits")[0]["tsctl"]["batching"]["sizes"]
    tsctl("unregister", "digits")
    if run.errors:
        raise Failed(f"{len(run.errors)} requests failed, the first with {run.errors[0]}")
    return run, {size: count - before.get(size, 0) for size, count in after.items() if count > before.get(size, 0)}


def serve_resnet(tsctl: Tsctl, weights: str | None) -> None:
    """Step 3: ResNet-152 on scikit-learn's photograph of a flower."""
    section(f"ResNet-152 with {'trained' if weights else 'random'} weights")
    prepare.prepare(tsctl.folder, weights)
    shutil.copy(QUICKSTART / "model.py", tsctl.folder)
    tsctl(
        "archive", "--model-name", "resnet-152", "--version", "2.0", "--handler", "image_classifier",
        "--model-file", "model.py", "--serialized-file", "resnet152.pth",
        "--extra-files", "index_to_name.json", "--export-path", "model_store",
    )  # fmt: skip
    tsctl("register", "resnet-152.mar", "--batch-size", "8", "--max-delay", "10", "--workers", "1")
    run = clients.send_all(tsctl.address, "/predictions/resnet-152", [(tsctl.folder / "flower.jpg").read_bytes()], 1)
    if run.errors or len(run.answers[0]) != 5:
        raise Failed(f"ResNet-152 did not answer with five classes: {run.errors}")
    render.heading(f"The top five for flower.jpg, after {run.seconds * 1000:.0f} ms")
    render.table(("CLASS", ">PROBABILITY"), [(name, f"{value:.4f}") for name, value in run.answers[0].items()])
    if not weights:
        render.plain(
            "(The weights are random: the form is right, the flower is not. DEMO=--weights takes trained ones.)"
        )
    render.heading("Its describe document")
    render.plain(tsctl("describe", "resnet-152"))


def stop(tsctl: Tsctl) -> None:
    """Step 4: stop the daemon, and see that nothing is left running."""
    section("Stop")
    pids = [tsctl.json("status")["pid"]]
    pids += [
        worker["pid"] for model in tsctl.json("ls") for worker in tsctl.json("describe", model["name"])[0]["workers"]
    ]
    tsctl("stop")
    left = [pid for pid in pids if running(pid)]
    if left:
        raise Failed(f"processes are left: {left}")
    render.out.print(f"The daemon and its workers have ended ({len(pids)} processes), and {tsctl.folder} is removed.")


def running(pid: int) -> bool:
    """Whether a process is there and has not ended: one that nobody has waited for is in state Z."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--weights", nargs="?", const=prepare.DOWNLOAD, metavar="FILE", help="Trained weights for ResNet-152."
    )
    arguments = parser.parse_args()
    weights = (
        str(Path(arguments.weights).absolute())
        if arguments.weights not in (None, prepare.DOWNLOAD)
        else arguments.weights
    )
    with tempfile.TemporaryDirectory(prefix="tsctl-demo-") as name:
        tsctl = Tsctl(Path(name))
        (tsctl.folder / "model_store").mkdir()
        try:
            serve_digits(tsctl)
            serve_resnet(tsctl, weights)
            stop(tsctl)
        except Failed as error:
            render.err.print(f"[red]The demo failed:[/red] {error}")
            return 1
        finally:
            if (tsctl.folder / "control.pid").exists():  # it failed, or Ctrl-C was pressed
                tsctl("stop", quiet=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
