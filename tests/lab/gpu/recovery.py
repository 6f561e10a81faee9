"""A GPU's own errors, and what becomes of the requests: `python -m tests.lab.gpu.recovery`, where there is one.

A handler whose four rows fit into the card's memory and whose eight do not, and which an index out of range breaks, is
served to clients. Prints a line for each claim, which begins with `ok` or `NOT SO`; exit code 1 if one is not so. The
same claims are tests on null cards (tests/e2e/test_gpu_recovery.py).
"""

import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.lab.benchmarks.peers.peer import free_port
from tests.places import ROOT
from tsctl.daemon.marfile import Packing, write_archive

HANDLER = """
import torch

class Real:
    def initialize(self, context):
        self.table = torch.nn.Embedding(10, 4).to("cuda:0")
        self.each = int(torch.cuda.get_device_properties(0).total_memory * 0.2)

    def handle(self, data, context):
        index = 99 if any(bytes(row["body"]) == b"break" for row in data) else 1
        looked_up = self.table(torch.tensor([index] * len(data), device="cuda:0"))
        room = torch.empty(self.each * len(data), dtype=torch.uint8, device="cuda:0")
        return [f"{len(data)} {looked_up.sum().item():g} {room.numel()}" for _ in data]
"""
CONFIG = "isolate: true\nretry: true\nbatchSize: 8\nmaxBatchDelay: 2000\nbatching: fixed\n"
PROBE = """
import torch
from tsctl.handlers.runtime.gpu_context import breakage, code_of
from tsctl.handlers.runtime.out_of_memory import is_out_of_memory, make_room

def error_of(call):
    try:
        call()
    except Exception as error:
        return error

full = error_of(lambda: torch.empty(400 << 30, dtype=torch.uint8, device="cuda:0"))
print("ok" if is_out_of_memory(full) and not breakage(full) else "NOT SO", "memory that is full breaks nothing")
make_room()
other = error_of(lambda: torch.ones(1, device="cuda:9"))
print("ok" if not breakage(other) else "NOT SO", "a GPU that is not there breaks nothing", code_of(other))
table = torch.nn.Embedding(10, 4).to("cuda:0")
broken = error_of(lambda: table(torch.tensor([99], device="cuda:0")).sum().item())
print("ok" if breakage(broken) else "NOT SO", "an index out of range breaks the context:", breakage(broken))
print("ok" if breakage(RuntimeError(str(broken))) else "NOT SO", "which is seen without the error's code, too")
"""
Answer = tuple[int, str]


class Checked:
    """The claims.

    Attributes:
        good: all of them are so.
    """

    good = True

    def claim(self, text: str, so: bool, seen: object = "") -> None:
        self.good = self.good and so
        print("ok" if so else "NOT SO", text, seen, flush=True)

    def told(self, lines: str) -> None:
        """Print what a process has claimed."""
        self.good = self.good and "NOT SO" not in lines
        print(lines, end="", flush=True)


def ask(port: int, body: bytes) -> Answer:
    headers = {"Content-Type": "application/octet-stream"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{port}/predictions/real", body, headers)
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def at_once(port: int, *bodies: bytes) -> list[Answer]:
    with ThreadPoolExecutor(len(bodies)) as clients:
        return list(clients.map(lambda body: ask(port, body), bodies))


def serve(folder: Path, checked: Checked) -> None:
    """Serve the handler, and see what becomes of its requests."""
    (folder / "real.py").write_text(HANDLER)
    (folder / "config.yaml").write_text(CONFIG)
    packing = Packing(
        model_name="real", version="1.0", handler=str(folder / "real.py"), config_file=folder / "config.yaml"
    )
    archive = write_archive(packing, folder, force=True)
    port = free_port()
    environment = os.environ | {
        "TSCTL_SOCKET": str(folder / "s"), "TSCTL_STATE_DIR": str(folder / "state"), "TSCTL_MODEL_STORE": str(folder),
        "TSCTL_INFERENCE_ADDRESS": f"127.0.0.1:{port}", "NO_COLOR": "1", "COLUMNS": "160",
    }  # fmt: skip

    def tsctl(*words: str) -> str:
        command = [sys.executable, "-m", "tsctl", *words]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        return done.stdout + done.stderr

    print(tsctl("start"), tsctl("register", archive.name, "--workers", "1"), flush=True)
    try:
        answers = at_once(port, *[b"x"] * 8) + at_once(port, *[b"x"] * 8)
        sizes = [text.split()[0] for status, text in answers if status == 200]
        checked.claim("eight rows do not fit, and all are answered in batches of four", sizes == ["4"] * 16, answers)
        broken, *others = at_once(port, b"break", b"x", b"x", b"x")
        checked.claim("a request that breaks the context is told so", "context is broken" in broken[1], broken)
        checked.claim("those beside it are answered", {status for status, _ in others} == {200}, others)
        after = at_once(port, *[b"x"] * 4)
        checked.claim("another worker serves", {status for status, _ in after} == {200}, after)
        print(tsctl("describe", "real"), tsctl("events"))
    finally:
        tsctl("stop")


def main(arguments: Sequence[str]) -> int:
    if arguments:
        print("there are no arguments", file=sys.stderr)
        return 2
    checked = Checked()
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    checked.told(done.stdout)
    checked.claim("each of these errors was looked at", done.stdout.count("\n") == 4, done.stderr[-500:])
    with tempfile.TemporaryDirectory(prefix="tsctl-gpu-") as folder:
        serve(Path(folder), checked)
    return 0 if checked.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
