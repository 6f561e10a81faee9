"""One file of TorchServe's tests, in a copy of the checkout that is removed afterwards."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from tests.environments import make_environment
from tests.lab.torchserve.programs import write_programs
from tests.lab.torchserve.table import HANDLERS, NOT_RUN, unjudged, why_different
from tests.lab.torchserve.verdict import Outcome, Row
from tests.lab.torchserve.weights import NO_NETWORK, make

ROOT = Path(__file__).parents[3]
PACKAGES = ("requests", "orjson", "psutil", "onnxscript")
BESIDE = ("lru-dict",)  # what handlers import; pip finds it there and needs no network
PORTS = {"INFERENCE": 8080, "MANAGEMENT": 8081, "METRICS": 8082}  # written in the tests
PATIENCE = 240.0  # seconds for a file
_COPIED = ("test", "ts", "ts_scripts", "model-archiver", "examples", "frontend/archive/src/test/resources")
_ARCHIVES = Path("ts_scripts/mar_config.json")  # what the tests pack, of which they need these
_NEEDED = ("mnist", "densenet161", "resnet-18")


class Suites:
    """A copy of the checkout in a folder, with the programs and an environment for the tests."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        for name in _COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, self.work / name, symlinks=True)
        prepare_archives(self.work)
        (folder / "workspace" / "model_store").mkdir(parents=True)  # below TMPDIR, where the tests expect one
        (folder / "bin").mkdir()
        write_programs(folder / "bin")
        self.python = make_environment(ROOT / ".torchserve", PACKAGES)
        make_environment(ROOT / ".torchserve-beside", BESIDE)
        self.beside = sysconfig.get_path("purelib", vars={"base": str(ROOT / ".torchserve-beside")})
        # On PYTHONPATH, it would be imported by the program `pip` of the tests, which is of another version.
        shutil.rmtree(Path(self.beside) / "pip", ignore_errors=True)
        # The tests of handlers find no `ts` but tsctl's, and the examples where they look for them.
        self.handlers = folder / "handlers"
        shutil.copytree(self.work / "ts" / HANDLERS, self.handlers / "tests" / HANDLERS)
        (self.handlers / "examples").symlink_to(self.work / "examples")

    def environment(self, python_path: str) -> dict[str, str]:
        """Return the variables of the tests: their own daemon, on the ports that they ask."""
        addresses = {f"TSCTL_{name}_ADDRESS": f"127.0.0.1:{port}" for name, port in PORTS.items()}
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return os.environ | NO_NETWORK | addresses | {
            "PATH": path,
            "PYTHONPATH": python_path,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TSCTL_SOCKET": str(self.folder / "control.sock"),
            "TSCTL_STATE_DIR": str(self.folder / "state"),
            "TMPDIR": str(self.folder),
        }  # fmt: skip

    def run(self, file: str) -> list[Row]:
        """Run a file of the tests; return a row for each case that was not skipped."""
        report = self.folder / f"{Path(file).name}.xml"
        if file.startswith(f"{HANDLERS}/"):
            python, folder, environment = sys.executable, self.handlers / "tests", self.environment(str(self.handlers))
        else:
            python, folder = str(self.python), self.work / "test" / "pytest"
            environment = self.environment(f"{self.work / 'model-archiver'}:{self.work}:{self.beside}")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", file]
        with open(report.with_suffix(".log"), "wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
            try:
                _wait(process, report)
            finally:
                subprocess.run(["tsctl", "stop"], env=environment, capture_output=True)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if not report.exists():
            return [judge_case(f"{file}::all", f"pytest wrote no report within {PATIENCE:g} s")]
        return list(read_report(file, report.read_text()))


def _wait(process: subprocess.Popen[bytes], report: Path) -> None:
    """Wait until pytest has ended or has reported: a daemon that a test leaves keeps its process from ending."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and not report.exists():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
            return


def prepare_archives(work: Path) -> None:
    """Have the tests pack only what they need, with random weights instead of downloaded ones."""
    kept = []
    for model in json.loads((work / _ARCHIVES).read_text()):
        if model["model_name"] in _NEEDED:
            model_file = work / model["model_file"]
            remote = model.pop("serialized_file_remote", None)
            if remote is not None:
                model["serialized_file_local"] = str(model_file.with_name(remote))
            weights = work / model["serialized_file_local"]
            if not weights.exists():  # downloaded, or a large file that the checkout has left out
                make(weights, model_file)
            kept.append(model)
    (work / _ARCHIVES).write_text(json.dumps(kept))
    stateful = work / "examples" / "stateful"
    if not (stateful / "model_cnn.pt").exists() and (stateful / "model.py").exists():
        make(stateful / "model_cnn.pt", stateful / "model.py")


def not_run() -> list[Row]:
    """Return the rows of the files that are not run."""
    return [Row(f"{file}::all", Outcome.PURPOSE, f"not run: {why}") for file, why in NOT_RUN.items()]


def read_report(file: str, text: str) -> Iterator[Row]:
    """Yield the rows of a report as pytest writes it for JUnit; a skipped case has none."""
    for case in ET.fromstring(text).iter("testcase"):
        failures = [part for part in case if part.tag in ("failure", "error")]
        name = f"{file}::{case.get('name')}"
        if failures:
            yield judge_case(name, f"{failures[0].get('message') or ''}\n{failures[0].text or ''}")
        elif not any(part.tag == "skipped" for part in case):
            yield Row(name, Outcome.WORKS)


def judge_case(name: str, message: str) -> Row:
    """Return the row of a case that failed: on purpose, not to be judged here, or by a defect."""
    if why := why_different(name, message):
        return Row(name, Outcome.PURPOSE, why)
    if reason := unjudged(name, message):
        return Row(name, Outcome.UNJUDGED, reason)
    return Row(name, Outcome.DEFECT, message.strip().partition("\n")[0])
