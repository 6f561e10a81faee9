"""Optimisations, from the command line to the worker and back."""

import json
from pathlib import Path

import pytest

from tests.e2e.served import Served
from tests.handlers.optimize.nets import pack_net
from tsctl.handlers.builtin.vision import example_image


@pytest.fixture(autouse=True)
def compiled_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch leaves a process that has compiled a model: nothing of it is a daemon's."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "elsewhere"))


@pytest.fixture
def archive(served: Served, tmp_path: Path) -> str:
    """A small image classifier whose archive tolerates no drift of `fold` at all."""
    return pack_net(tmp_path / "net", served.store, "optimizeTolerance: {fold: 0}\n")


def test_what_the_handler_has_by_default_is_checked_and_told(served: Served, archive: str) -> None:
    served.tsctl("register", archive)

    told = {each["name"]: each for each in served.describe("net")["tsctl"]["optimize"]}

    assert set(told) == {"fast_images", "fold", "channels_last"}
    assert not told["fold"]["applied"]
    assert told["fold"]["reason"] == f"its drift is {told['fold']['drift']:.1e}, and 0.0e+00 is tolerated"
    assert "the model is served without the optimisation fold: its drift is" in served.tsctl("logs", "net")
    assert served.ask("/predictions/net", example_image()).status == 200


@pytest.mark.parametrize("template", ["false", "true"])
def test_outcomes_are_written_down_in_the_state_directory(template: str, served: Served, archive: str) -> None:
    served.tsctl("stop")
    served.environment["TSCTL_TEMPLATE"] = template
    served.start()

    served.tsctl("register", archive)

    [kept] = (served.folder / "state" / "trials").glob("*.json")
    assert json.loads(kept.read_text())["outcomes"]
    told = served.describe("net")["tsctl"]["optimize"]
    assert any(each["applied"] and each["drift"] is not None for each in told)


def test_onnx_runtime_runs_a_model_in_workers_of_a_template_and_with_their_threads(
    served: Served, archive: str
) -> None:
    for package in ("onnxruntime", "onnx"):
        pytest.importorskip(package)
    served.tsctl("stop")
    served.environment["TSCTL_TEMPLATE"] = "true"
    served.start()
    served.tsctl("register", archive, "--optimize", "none")
    plain = served.ask("/predictions/net", example_image()).json
    served.tsctl("unregister", "net")

    served.tsctl("register", archive, "--optimize", "none,onnxruntime")
    answers = [served.ask("/predictions/net", example_image()).json]
    for workers in ("2", "1"):  # each gets another share of the cores
        served.tsctl("scale", "net", workers)
        answers += [served.ask("/predictions/net", example_image()).json for _ in range(4)]

    assert answers == [pytest.approx(plain, rel=1e-4)] * 9
    (outcome,) = served.describe("net")["tsctl"]["optimize"]
    assert (outcome["name"], outcome["applied"]) == ("onnxruntime", True)
    assert len(list((served.folder / "state" / "compiled").rglob("model.onnx"))) == 1
