"""Whether there may be a trial is known when a version is built, and why not."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.kit.build import make_settings, make_spec
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.extensions.optimizing import building
from tsctl.daemon.extensions.optimizing.building import threads_of, trial_for
from tsctl.daemon.extensions.optimizing.record import TrialStore
from tsctl.daemon.extensions.optimizing.trial import Trial, TrialState
from tsctl.daemon.marfile import parse_manifest
from tsctl.daemon.models.request import Source
from tsctl.daemon.workers.stub import StubEngine


def auto(
    folder: Path,
    wish: str = "built-in",
    document: dict[str, Any] | None = None,
    handler: str = "image_classifier",
    batch_size: int = 1,
    optimize: tuple[str, ...] | None = None,
    **spec: Any,
) -> Trial:
    manifest = parse_manifest({"model": {"modelName": "m", "modelVersion": "1.0", "handler": handler}})
    source = Source("m.mar", folder, None, manifest, document or {})
    settings, pool = make_settings(batch_size=batch_size, optimize=optimize), SimpleNamespace(spec=make_spec(**spec))
    model, config = SimpleNamespace(source=source, settings=settings, pool=pool), SimpleNamespace(auto_optimize=wish)
    return trial_for(cast(Any, model), cast(Any, config), TrialStore(folder / "trials"), 2)


def test_one_that_may_be_tried_waits_and_knows_on_what_its_trial_hangs(tmp_path: Path) -> None:
    found = auto(tmp_path, document={"optimizeTolerance": {"bf16": 0.02}}, batch_size=8)

    assert (found.state, found.obstacle, found.asked) == (TrialState.WAITING, "", False)
    assert (found.facts.batch_size, found.facts.threads, found.facts.lossy) == (8, 2, {"bf16": 0.02})
    assert found.facts.archive.startswith("marks-") and found.facts.torch and found.facts.processor


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param({"wish": "never"}, "the daemon's `auto_optimize` is `never`", id="the daemon never does"),
        pytest.param({"devices": (0,)}, "compiled code is not kept for GPUs", id="GPUs"),
        pytest.param({"mode": "continuous"}, "only versions that run whole batches", id="row by row"),
        pytest.param({"engine": StubEngine(FakeClock())}, "only versions that run whole batches", id="a cluster"),
        pytest.param({"group": 2}, "only versions", id="processes"),
    ],
)
def test_an_obstacle_is_told(given: dict[str, Any], reason: str, tmp_path: Path) -> None:
    found = auto(tmp_path, optimize=("auto",), **given)

    assert found.state is TrialState.OFF
    assert found.obstacle.startswith(reason)
    assert found.names is None


def test_without_a_compiler_only_what_needs_none_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "find_compiler", lambda: None)
    monkeypatch.setattr(building, "find_spec", lambda name: None)

    nothing = auto(tmp_path, optimize=("auto",), handler="mine.py")
    something = auto(tmp_path, optimize=("auto",), document={"optimizeTolerance": {"bf16": 0.02}}, handler="mine.py")
    defaults = auto(tmp_path, optimize=("auto",))

    assert nothing.obstacle.startswith("there is neither a C++ compiler nor ONNX Runtime")
    assert something.sets == [(), ("bf16",)]
    assert defaults.sets == [(), ("none",)]


@pytest.mark.parametrize(("missing", "tried"), [("", True), ("onnx", False), ("onnxruntime", False)])
def test_onnx_runtime_is_tried_where_all_of_it_is_installed(
    missing: str, tried: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "find_compiler", lambda: None)
    monkeypatch.setattr(building, "find_spec", lambda name: None if name == missing else name)

    found = auto(tmp_path, optimize=("auto",))

    assert (("onnxruntime",) in found.sets) is tried
    assert bool(found.facts.onnxruntime) is tried, "where it is installed later, a trial is made again"


def test_where_cpu_time_is_limited_who_is_tried_has_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "has_quota", lambda: True)

    unasked, asked = auto(tmp_path), auto(tmp_path, optimize=("auto",))

    assert unasked is not None and unasked.obstacle.startswith("a cgroup limits the daemon's CPU time")
    assert asked is not None and asked.state is TrialState.WAITING


def test_a_folder_that_is_gone_is_an_obstacle(tmp_path: Path) -> None:
    found = auto(tmp_path / "gone")

    assert found.obstacle.startswith("a file cannot be read: ")


@pytest.mark.parametrize(
    ("cores", "workers", "environment", "threads"),
    [
        pytest.param(8, 2, {}, 4, id="a share of the cores"),
        pytest.param(8, 0, {}, 8, id="loaded on demand: as for one"),
        pytest.param(8, 2, {"OMP_NUM_THREADS": "3"}, 3, id="as the operator says"),
    ],
)
def test_the_threads_are_those_that_the_pool_will_give(
    cores: int, workers: int, environment: dict[str, str], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "usable_cores", lambda: cores)

    assert threads_of(make_settings(workers=workers), make_spec(), environment) == threads
