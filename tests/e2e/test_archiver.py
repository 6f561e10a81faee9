"""Archives of the real torch-model-archiver are served, and ours are the same as its own.

That ours load in the real TorchServe is what every case of tests/lab/conformance shows: its archives
are packed by our archiver.
"""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.e2e.served import ARCHIVES, PATIENCE, TSCTL, Served
from tests.kit.archives import write_files

FORMATS = {"default": "mar", "zip-store": "mar", "tgz": "tar.gz", "no-archive": ""}
REAL = [sys.executable, "-m", "model_archiver.model_packaging"]
OURS = [str(TSCTL), "archive"]

Archive = Callable[..., Path]  # (command, model name, format, *flags) → what was written


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return the files for the archives."""
    torch.save(torch.nn.Linear(3, 2).state_dict(), tmp_path / "weights.pt")
    return write_files(
        tmp_path,
        {
            "lists.py": (ARCHIVES / "lists.py").read_bytes(),
            "linear.py": b"import torch\nclass Net(torch.nn.Linear):\n    def __init__(self): super().__init__(3, 2)\n",
            "extra/labels.json": b"{}",
            "extra/deep/table.csv": b"1,2\n",
            "extra/.hidden": b"a hidden file is packed",
            "extra/.checkpoints/old.json": b"and a hidden directory is not",
            "extra/__pycache__/old.pyc": b"nor is what Python compiled",
            "one.txt": b"1",
            "two.txt": b"22",
            "requirements.txt": b"# nothing\n",
            "config.yaml": b"batchSize: 3\nmaxBatchDelay: 20\nhandler:\n  mine: [1, 2.5]\n",
        },
    )


@pytest.fixture
def archive(files: Path) -> Archive:
    """Runs one of the two archivers, in the folder of the files."""

    def run(tool: Sequence[str], name: str, form: str, *flags: str) -> Path:
        out, temporary = files / f"out-{Path(tool[0]).name}", files / "temporary"
        out.mkdir(exist_ok=True)
        temporary.mkdir(exist_ok=True)
        command = [*tool, "--model-name", name, "--archive-format", form, "--export-path", str(out), *flags]
        environment = os.environ | {"TMPDIR": str(temporary)}  # the real one clears <tmp>/<model's name>
        subprocess.run(command, cwd=files, env=environment, check=True, capture_output=True, timeout=PATIENCE)
        return out / ".".join(filter(None, (name, FORMATS[form])))

    return run


EVERYTHING = (
    "--handler", "lists.py", "--version", "2.7", "--runtime", "python3", "--extra-files", "extra,one.txt,t*.txt",
    "--requirements-file", "requirements.txt", "--config-file", "config.yaml", "--serialized-file", "weights.pt",
    "--model-file", "linear.py",
)  # fmt: skip


def contents(archive: Path) -> dict[str, Any]:
    """Return an archive's files in order: name → bytes; of the manifest, all but the time."""
    if archive.is_dir():
        paths = {str(path.relative_to(archive)): path for path in archive.rglob("*") if path.is_file()}
        found = {name: path.read_bytes() for name, path in paths.items()}
    elif archive.suffix == ".mar":
        with zipfile.ZipFile(archive) as opened:
            found = {name: opened.read(name) for name in opened.namelist() if not name.endswith("/")}
    else:
        with tarfile.open(archive) as tar:
            files = [member for member in tar if member.isfile()]
            found = {member.name: tar.extractfile(member).read() for member in files}  # type: ignore[union-attr]
    (manifest,) = [name for name in found if name.endswith("MAR-INF/MANIFEST.json")]
    document = json.loads(found.pop(manifest))
    assert len(document.pop("createdOn")) == len("01/02/2003 04:05:06")
    return found | {manifest: document}


@pytest.mark.parametrize("form", FORMATS)
def test_an_archive_of_the_real_archiver_is_served_and_ours_holds_the_same(
    shared: Served, archive: Archive, form: str
) -> None:
    made = archive(REAL, "real", form, *EVERYTHING)

    assert contents(archive(OURS, "real", form, *EVERYTHING)) == contents(made)
    shared.tsctl("register", str(made))

    try:
        found = shared.ask("/predictions/real/2.7").json
        assert set(found["files"]) == {
            "MAR-INF/MANIFEST.json", "lists.py", "linear.py", "weights.pt", "labels.json", "deep/table.csv", ".hidden",
            "one.txt", "two.txt", "requirements.txt", "config.yaml",
        }  # fmt: skip
        assert found["manifest"]["runtime"] == "python3"
        assert found["manifest"]["model"]["modelVersion"] == "2.7"
        assert found["config"]["handler"] == {"mine": [1, 2.5]}
        described = shared.describe("real")
        assert (described["batchSize"], described["maxBatchDelay"], described["runtime"]) == (3, 20, "python3")
    finally:
        shared.tsctl("unregister", "real")


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--handler", "lists:entry"), id="a function"),
        pytest.param(("--handler", "lists"), id="a file without its suffix"),
        pytest.param(("--handler", "./lists.py"), id="a path"),
        pytest.param(("--handler", "image_classifier"), id="a built-in handler"),
        pytest.param(("--handler", "lists.py", "--extra-files", "./extra/"), id="a directory with a slash"),
    ],
)
def test_the_flags_mean_the_same(archive: Archive, flags: Sequence[str]) -> None:
    theirs, ours = (contents(archive(tool, "same", "default", "--version", "1.0", *flags)) for tool in (REAL, OURS))

    assert ours == theirs


def test_a_built_in_handler_in_an_archive_of_the_real_archiver_predicts(idle: Served, archive: Archive) -> None:
    flags = ("--handler", "base_handler", "--model-file", "linear.py", "--serialized-file", "weights.pt")
    made = archive(REAL, "built", "default", "--version", "1.0", *flags)
    idle.environment["TS_SERVICE_ENVELOPE"] = "body"
    idle.start()

    idle.tsctl("register", str(made))

    weights = torch.load(made.parent.parent / "weights.pt")
    expected = torch.tensor([1.5, 2.0, 3.5]) @ weights["weight"].T + weights["bias"]
    answer = idle.predict("built", [1.5, 2.0, 3.5])
    assert answer.json == pytest.approx(expected.tolist(), rel=1e-5)
