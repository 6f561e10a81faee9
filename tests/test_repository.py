"""What someone who joins reads and runs is true: targets, paths, workflows, typed packages."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.programs import PROGRAMS

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text()
PHONY = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[0].split()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "RELEASING.md")


def document(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def unknown(text: str) -> set[str]:
    """Return the targets and the programs of the laboratory that a text names and nobody knows."""
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text)) - set(PHONY)
    return named | set(re.findall(r"python3? -m tests\.lab ([a-z-]+)", text)) - PROGRAMS.keys()


def test_make_alone_prints_every_target_with_a_sentence() -> None:
    printed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    described = dict(re.findall(r"^make (\S+) +(\S.*)$", printed, re.MULTILINE))
    assert sorted(described) == sorted(PHONY)
    assert len(PHONY) <= 17  # `help`, and sixteen that people type


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_each_step_of_a_workflow_is_an_action_or_a_command_that_exists(file: Path) -> None:
    jobs = document(file)["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "uses" not in step]
    commands += [each for job in jobs for each in job.get("strategy", {}).get("matrix", {}).get("command", [])]

    known = [each for each in commands if re.match(r"make |python -m tests\.lab ", each) and not unknown(each)]
    assert set(commands) - set(known) <= {'bash -c "$COMMAND"'}


@pytest.mark.parametrize("name", PAGES)
def test_the_paths_and_targets_that_a_page_names_exist(name: str) -> None:
    page = (ROOT / name).read_text()

    paths = set(re.findall(r"`((?:daemon|handlers|tests|tsctl|docs)/[^` ]+)`", page))
    paths |= {link for link in re.findall(r"\]\(([^)#]+)", page) if "://" not in link}
    assert {path for path in paths if not (ROOT / path).exists()} == set()
    assert unknown(page) == set()


@pytest.mark.parametrize("package", ["daemon", "handlers", "tsctl"])
def test_a_package_says_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


JOBS = {name: job for file in WORKFLOWS for name, job in document(file)["jobs"].items()}


def test_the_jobs_are_few_and_compiled_modules_are_tested_on_one_python() -> None:
    assert sum(len(document(file)["jobs"]) for file in WORKFLOWS) == len(JOBS) <= 9
    compiled = "python -m tests.lab compiled"
    running = [job for job in JOBS.values() if any(step.get("run") == compiled for step in job["steps"])]
    assert ["strategy" in job for job in running] == [False]


def test_a_nightly_job_runs_the_oldest_torch_that_is_promised() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (promised,) = (each for each in settings["project"]["dependencies"] if each.startswith("torch>"))
    constraints = (ROOT / ".github" / "oldest.txt").read_text().splitlines()

    assert f"{promised.replace('>=', '==')}.0" in constraints
    assert JOBS["oldest"]["env"]["PIP_CONSTRAINT"].endswith("/.github/oldest.txt")


def test_the_versions_of_python_are_the_same_in_tests_wheels_and_metadata() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tested = document(ROOT / ".github/workflows/test.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"]

    wheels = settings["tool"]["cibuildwheel"]["build"].split()
    claimed = re.findall(r":: (3\.\d+)\b", " ".join(settings["project"]["classifiers"]))
    assert [f"cp{version.replace('.', '')}-*" for version in tested] == wheels
    assert claimed == tested
