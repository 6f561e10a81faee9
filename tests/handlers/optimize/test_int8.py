"""`int8` on a handler: calibrated with the archive's samples, refused where the best classes change."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.handlers.optimize.int8.nets import needs_integers
from tests.handlers.optimize.loading import answer, done, loaded
from tests.handlers.optimize.nets import put_archive
from tests.handlers.optimize.trained import examples, put_trained
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.optimize.checks import outcomes
from tsctl.handlers.optimize.int8.calibration import Observer, Scales, scale_of
from tsctl.handlers.optimize.int8.layers import Int8Layer, Scale
from tsctl.handlers.optimize.int8.model import Int8
from tsctl.handlers.sdk.errors import HandlerError

ROOT = Path(__file__).parents[3]
pytestmark = needs_integers


class Mine(ImageClassifier):
    """A user's own."""


class Regression(ImageClassifier):
    """A user's own, whose answers are no classes."""

    chooses_class = False


def trained(model_dir: Path, samples: int = 32, handler_class: type[BaseHandler] = Mine, **more: Any) -> BaseHandler:
    entry, config = put_trained(model_dir, samples)
    return loaded(model_dir, entry, handler_class, **config, **more)


@pytest.mark.parametrize("samples", [pytest.param(32, id="32 samples"), pytest.param(2, id="2 samples, and variants")])
def test_a_trained_network_chooses_the_same_classes_for_images_it_was_not_calibrated_with(
    samples: int, model_dir: Path
) -> None:
    handler = trained(model_dir, samples)
    images, classes = examples(500, 2000)
    plain = handler.inference(images).argmax(1)

    report = done(handler, "int8")["int8"]

    assert report.applied
    assert report.agreement is not None
    assert report.agreement >= 0.95
    assert report.drift is not None
    assert 0 < report.drift < 0.1
    assert (plain == classes).double().mean() > 0.9
    assert (handler.inference(images).argmax(1) == plain).double().mean() > 0.98
    assert handler.plain is not None  # which explanations see
    kept = handler.plain.model()
    assert not any(isinstance(module, Int8Layer) for module in kept.modules())
    assert kept.head.weight.dtype == torch.float32


def narrow(observer: Observer) -> Scale:
    """Calibrate wrongly: nearly all values are out of the range."""
    return scale_of(0.0, 1e-3)


def test_a_poor_quantisation_is_refused_by_the_classes_that_it_changes(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = trained(model_dir)
    monkeypatch.setattr(Observer, "scale", narrow)

    sentence = (
        r"^`optimize: int8` cannot be done: on 32 inputs \d\d\.\d% of the best classes differ, and 5\.0% are tolerated:"
        " name typical inputs as `warmup`, or raise `optimizeTolerance`$"
    )
    with pytest.raises(HandlerError, match=sentence):
        done(handler, "int8")
    report = done(trained(model_dir, optimizeTolerance={"int8": 1}), "int8")["int8"]
    assert report.applied and report.agreement is not None and report.agreement < 0.9, "as many may differ"


def test_where_answers_are_no_classes_the_drift_counts(model_dir: Path) -> None:
    report = done(trained(model_dir, handler_class=Regression, optimizeTolerance={"int8": 0.1}), "int8")["int8"]

    assert report.applied
    assert report.agreement is None
    with pytest.raises(HandlerError, match=r"its drift is \d\.\de-\d\d, and 1\.0e-03 is tolerated$"):
        done(trained(model_dir, handler_class=Regression, optimizeTolerance={"int8": 1e-3}), "int8")


@pytest.mark.parametrize("other", ["bf16", "compile"])
def test_int8_excludes_what_else_makes_the_same_layers_faster(other: str, model_dir: Path) -> None:
    sentence = rf"cannot be done: `int8` replaces what `{other}` makes faster; drop one of them$"
    with pytest.raises(HandlerError, match=sentence):
        done(trained(model_dir), "int8", other)


FUNCTIONAL = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(6, 3))
        def forward(self, images):
            return torch.nn.functional.linear(images.mean(dim=(2, 3)), self.weight)
"""


def test_a_model_without_layers_of_torch_is_refused(model_dir: Path) -> None:
    entry = put_archive(model_dir, FUNCTIONAL)

    with pytest.raises(HandlerError, match="int8` cannot be done: no convolution or linear layer"):
        done(loaded(model_dir, entry), "none", "int8")


def test_without_a_sample_the_made_up_image_is_what_it_is_calibrated_with(
    model_dir: Path, entry: dict[str, str]
) -> None:
    handler = loaded(model_dir, entry)
    before = answer(handler)

    report = done(handler, "int8")["int8"]

    assert report.applied
    assert report.agreement is not None
    assert isinstance(handler.model, Int8)
    assert next(iter(answer(handler))) == next(iter(before))


def test_the_next_load_packs_the_weights_by_the_first_ones_calibration(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(outcomes.VARIABLE, str(tmp_path / "trials"))
    first, second = trained(model_dir), trained(model_dir)
    reports = done(first, "int8")
    monkeypatch.setattr(Int8, "calibrate", lambda self, run: pytest.fail("the scales are known"))

    again = done(second, "int8")

    assert again["int8"].agreement == reports["int8"].agreement
    images, _ = examples(8, 3000)
    assert torch.equal(first.inference(images), second.inference(images))


def test_other_samples_in_a_folder_that_is_served_in_place_are_another_calibration(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(outcomes.VARIABLE, str(tmp_path / "trials"))
    done(trained(model_dir, 4), "int8")
    body = json.dumps((examples(1, 9)[0][0] * 3).tolist())
    (model_dir / "samples" / "000.json").write_text(body)
    calibrate, calls = Int8.calibrate, 0

    def counted(model: Int8, run: Callable[[], object]) -> Scales:
        nonlocal calls
        calls += 1
        return calibrate(model, run)

    monkeypatch.setattr(Int8, "calibrate", counted)
    entry = {"modelFile": "net.py", "serializedFile": "net.pth"}

    done(loaded(model_dir, entry, Mine, warmup={"file": "samples", "contentType": "application/json"}), "int8")

    assert calls == 1


# In a process of its own, which has run nothing in parallel, as a template has not: a fork loses the threads of torch.
TEMPLATE = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.optimize.int8.layers import Int8Layer
from tsctl.handlers.optimize.int8.model import Int8
from tsctl.handlers.process.forking import start_apart
from tests.handlers.optimize.test_int8 import Mine
from tests.handlers.optimize.loading import loaded
from tests.handlers.optimize.trained import examples

calibrate, here = Int8.calibrate, []
Int8.calibrate = lambda self, run: here.append(1) or calibrate(self, run)
model_dir, entry, config = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
handler = loaded(model_dir, entry, Mine, **config)
reports = optimize(handler, ["int8"], model_dir, config, 2, apart=lambda work: start_apart(2, (), work))
packed = [each for each in handler.model.modules() if isinstance(each, Int8Layer)]
images, _ = examples(8, 3000)

def worker():  # forked from the template: nothing is loaded or packed again
    torch.set_num_threads(2)
    return json.dumps(handler.inference(images).argmax(1).tolist()).encode()

answers = [json.loads(start_apart(2, (), worker)()) for _ in range(2)]
print(json.dumps([len(here), len(packed), reports[-1].applied, reports[-1].agreement, answers]))
"""


def test_workers_forked_from_a_template_share_weights_that_it_packed_by_the_calibration_of_another_process(
    model_dir: Path,
) -> None:
    entry, config = put_trained(model_dir, 8)
    program = [sys.executable, "-c", TEMPLATE, str(model_dir), json.dumps(entry), json.dumps(config)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert ended.returncode == 0, ended.stderr
    calibrated, packed, applied, agreed, answers = json.loads(ended.stdout.splitlines()[-1])

    assert calibrated == 0  # in that process
    assert packed == 3
    assert applied
    assert agreed >= 0.95
    handler = loaded(model_dir, entry, Mine, **config)
    done(handler, "int8")
    assert answers == [handler.inference(examples(8, 3000)[0]).argmax(1).tolist()] * 2
