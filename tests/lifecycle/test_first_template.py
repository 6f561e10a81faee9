"""The first template is started at once where a model of this start seems to need torch."""

import json
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.archives import model_files, write_files, write_mar
from tests.kit.build import make_config
from tsctl.daemon import paths
from tsctl.daemon.lifecycle import first_template
from tsctl.daemon.lifecycle.first_template import start_early, wants_torch

TORCH = {"net.py": b"import torch\n"}


def store(folder: Path, *archives: str) -> str:
    """Make a store with the archives `plain.mar` and `net.mar`; return its path."""
    directory = folder / "store"
    directory.mkdir()
    for name in archives:
        write_mar(directory / name, model_files(handler="handler.py") | (TORCH if name == "net.mar" else {}))
    return str(directory)


def remember(state: Path, **unpacked: dict[str, bytes]) -> None:
    for name, files in unpacked.items():
        write_files(paths.models_dir(state) / name, files)
    models = [{"name": name, "unpacked": name} for name in unpacked] + [{"name": "in place", "unpacked": None}]
    state.mkdir(exist_ok=True)
    paths.snapshot(state).write_text(json.dumps({"version": 1, "models": models}))


@pytest.mark.parametrize(
    ("models", "wanted"),
    [
        pytest.param("net.mar", True, id="an archive that mentions torch"),
        pytest.param("plain.mar", False, id="one that does not"),
        pytest.param("plain.mar,other=net.mar", True, id="one of two"),
        pytest.param("all", True, id="one of all"),
        pytest.param("gone.mar", False, id="an archive that is not there"),
        pytest.param("https://models.example/net.mar", False, id="an archive that is elsewhere"),
    ],
)
def test_archives_of_the_list(models: str, wanted: bool, tmp_path: Path) -> None:
    where = store(tmp_path, "plain.mar", "net.mar")
    config = make_config(tmp_path, model_store=where, models=models, restore="false")

    assert wants_torch(config, replacing=False) is wanted


def test_a_built_in_handler_needs_torch_unless_a_file_has_its_name(tmp_path: Path) -> None:
    files = model_files(handler="image_classifier")
    write_mar(tmp_path / "ours.mar", files)
    write_mar(tmp_path / "theirs.mar", files | {"image_classifier.py": b""})

    for name, wanted in (("ours.mar", True), ("theirs.mar", False)):
        config = make_config(tmp_path, model_store=str(tmp_path), models=name, restore="false")
        assert wants_torch(config, replacing=False) is wanted


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        pytest.param(model_files() | TORCH, True, id="with torch"),
        pytest.param(model_files(), False, id="without"),
        pytest.param({"nothing": b""}, False, id="damaged"),
    ],
)
def test_versions_of_the_snapshot(files: dict[str, bytes], wanted: bool, tmp_path: Path) -> None:
    config = make_config(tmp_path)
    remember(config.state_dir, m=files)

    assert wants_torch(config, replacing=False) is wanted


def test_a_daemon_that_replaces_another_one_looks_at_the_snapshot_only(tmp_path: Path) -> None:
    where = store(tmp_path, "net.mar")
    config = make_config(tmp_path, model_store=where, models="net.mar", restore="false")
    remember(config.state_dir, m=model_files())

    assert not wants_torch(config, replacing=True)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"models": 3}'])
def test_where_there_is_no_model_yet_the_first_will_need_it(content: bytes | None, tmp_path: Path) -> None:
    config = make_config(tmp_path)
    if content is not None:
        config.state_dir.mkdir(exist_ok=True)
        paths.snapshot(config.state_dir).write_bytes(content)

    assert wants_torch(config, replacing=False)


class Started:
    """Stands for the start of a process."""

    def __init__(self) -> None:
        self.environments: list[dict[str, str]] = []

    def __call__(self, environment: dict[str, str]) -> Any:
        self.environments.append(environment)
        return self


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    started = Started()
    monkeypatch.setattr(first_template, "start_template", started)
    return started


def test_the_template_has_the_environment_of_workers(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # torch sets it, where a test has compiled
    config = make_config(tmp_path)

    given: Any = start_early(config, replacing=False)

    assert given is started
    (environment,) = started.environments
    assert environment["TORCHINDUCTOR_CACHE_DIR"] == str(paths.compiled_dir(config.state_dir))
    assert "TSWORKER_OF" in environment
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == hard


def test_without_templates_none_is_started(started: Started, tmp_path: Path) -> None:
    assert start_early(make_config(tmp_path, template="false"), replacing=False) is None
    assert started.environments == []


def test_where_no_process_can_be_started_the_daemon_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", fail)

    assert start_early(make_config(tmp_path), replacing=False) is None
