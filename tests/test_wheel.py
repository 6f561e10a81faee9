"""An installation brings one import name into an environment, from a checkout and from the source archive alike."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import hatch_build
from tests.compiled import COMPILED
from tests.environments import make_environment
from tests.places import ROOT

CHECKOUT = ROOT.parents[1] if COMPILED in os.environ else ROOT  # beside compiled modules the sources are a copy


def build(target: str, source: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    subprocess.run(command, cwd=source, env=os.environ | {"TSCTL_COMPILE": "0"}, check=True)
    return next(into.glob({"wheel": "*.whl", "sdist": "*.tar.gz"}[target]))


def content_of(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file, but of those that describe the wheel itself."""
    with zipfile.ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist() if ".dist-info/" not in each.filename}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", CHECKOUT, tmp_path_factory.mktemp("wheel"))


@pytest.mark.heavy
def test_a_wheel_installs_one_import_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.partition("/")[0] for name in archive.namelist()}

    (data,) = [name for name in names if re.fullmatch(r"tsctl-[\d.]+\.data", name)]  # completions and pages for `man`
    (described,) = [name for name in names if name.endswith(".dist-info")]
    assert names == {"tsctl", "tsctl-torchserve.pth", data, described}
    assert {"tsctl/daemon/__main__.py", "tsctl/handlers/worker.py"} <= content_of(wheel).keys()


@pytest.mark.heavy
def test_a_wheel_that_is_built_of_the_source_archive_has_the_same_content(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", CHECKOUT, tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
        (top,) = {name.partition("/")[0] for name in archive.getnames()}

    assert content_of(build("wheel", tmp_path / top, tmp_path)) == content_of(wheel)


@pytest.mark.heavy
@pytest.mark.parametrize("tsctl_first", [True, False], ids=["tsctl first", "python-daemon first"])
def test_python_daemon_may_be_in_the_same_environment(wheel: Path, tmp_path: Path, tsctl_first: bool) -> None:
    python = make_environment(tmp_path / "environment", [])  # it sees what tsctl needs
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    ours, theirs = ["--no-deps", str(wheel)], ["python-daemon"]
    for wanted in (ours, theirs) if tsctl_first else (theirs, ours):
        subprocess.run([*pip, "install", *wanted], check=True)

    def imported(program: str) -> str:
        return subprocess.run([python, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert imported("import daemon; print(daemon.DaemonContext.__module__)") == "daemon.daemon\n"
    subprocess.run([*pip, "uninstall", "--yes", "python-daemon"], check=True)
    assert imported("import tsctl.daemon.server.daemon as server; print(server.__file__)").startswith(str(tmp_path))


@pytest.mark.parametrize("lost", ["as a text", "whole"])
def test_a_link_that_an_archive_has_lost_is_made_again(tmp_path: Path, lost: str) -> None:
    for name in ("tsctl", "daemon", "handlers"):
        (tmp_path / name).mkdir()
    if lost == "as a text":  # what a zip archive makes of it
        (tmp_path / "tsctl" / "daemon").write_text("../daemon")

    hatch_build.link_folders(tmp_path)

    assert (tmp_path / "tsctl" / "daemon").samefile(tmp_path / "daemon")
    assert (tmp_path / "tsctl" / "handlers").samefile(tmp_path / "handlers")
