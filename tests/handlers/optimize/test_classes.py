"""Where answers are classes, what is more than rounding is judged by the best classes that it keeps."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.handlers.optimize.loading import done, loaded
from tests.handlers.optimize.nets import put_archive
from tests.handlers.optimize.trained import put_trained
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.image_segmenter import ImageSegmenter
from tsctl.handlers.optimize import bfloat16, steps
from tsctl.handlers.optimize.steps import Steps
from tsctl.handlers.sdk.errors import HandlerError

# Two classes that are nearly as good as each other, for every image.
CLOSE = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1))
        def forward(self, images):
            ones = torch.ones(len(images), 1, device=images.device)
            return torch.cat([ones, ones * 1.001, -ones], dim=1) * self.scale
"""


class Swapping(nn.Module):
    """Moves the best class down by a thousandth: a drift of 0.002."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.model(images)
        return output - output.new_tensor([0.0, 0.002, 0.0]) * output.abs()


class Regression(ImageClassifier):
    """Its answers are no classes."""

    chooses_class = False


@pytest.fixture
def fast_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "refusal", lambda device: "")


@pytest.fixture
def swapping(monkeypatch: pytest.MonkeyPatch, fast_bf16: None) -> None:
    monkeypatch.setattr(bfloat16, "Bfloat16", Swapping)


@pytest.mark.usefixtures("fast_bf16")
def test_bf16_that_keeps_the_classes_is_applied_with_the_fraction_and_what_was_wanted(model_dir: Path) -> None:
    entry, config = put_trained(model_dir, 32)

    report = done(loaded(model_dir, entry, ImageClassifier, **config), "bf16")["bf16"]

    assert (report.applied, report.agreement, report.wanted, report.inputs) == (True, 1.0, 0.99, 32)


@pytest.mark.usefixtures("swapping")
def test_bf16_that_changes_classes_within_the_tolerance_of_numbers_is_refused_by_the_fraction(model_dir: Path) -> None:
    with pytest.raises(HandlerError) as raised:
        done(loaded(model_dir, put_archive(model_dir, CLOSE)), "bf16")

    assert str(raised.value) == (
        "`optimize: bf16` cannot be done: on 32 inputs 100.0% of the best classes differ, and 1.0% are tolerated: name"
        " typical inputs as `warmup`, or raise `optimizeTolerance`"
    )


@pytest.mark.usefixtures("swapping")
def test_the_archives_tolerance_is_of_the_classes(model_dir: Path) -> None:
    handler = loaded(model_dir, put_archive(model_dir, CLOSE), optimizeTolerance={"bf16": 1})

    report = done(handler, "bf16")["bf16"]

    assert (report.applied, report.agreement, report.wanted) == (True, 0.0, 0.0)


@pytest.mark.usefixtures("swapping")
def test_where_answers_are_no_classes_the_drift_decides(model_dir: Path) -> None:
    report = done(loaded(model_dir, put_archive(model_dir, CLOSE), Regression), "bf16")["bf16"]

    assert (report.applied, report.agreement, report.wanted, report.inputs) == (True, None, None, 0)
    assert report.drift == pytest.approx(0.002, rel=0.01)


def test_numbers_that_are_none_are_refused_whatever_the_classes(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, fast_bf16: None
) -> None:
    class Broken(Swapping):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return torch.full((len(images), 3), torch.nan, device=images.device)

    monkeypatch.setattr(bfloat16, "Bfloat16", Broken)

    with pytest.raises(HandlerError, match="its drift is inf"):
        done(loaded(model_dir, put_archive(model_dir, CLOSE), optimizeTolerance={"bf16": 1}), "bf16")


def test_an_image_that_is_decoded_smaller_is_judged_by_its_class_too(model_dir: Path, entry: dict[str, str]) -> None:
    report = done(loaded(model_dir, entry), "scaled_decode")["scaled_decode"]

    assert (report.applied, report.agreement, report.wanted) == (True, 1.0, 0.99)


def test_and_refused_by_it(model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "agreement", lambda plain, other: 1 - 1 / len(plain))

    with pytest.raises(HandlerError, match=r"on 32 inputs 3\.1% of the best classes differ, and 1\.0% are tolerated"):
        done(loaded(model_dir, entry), "scaled_decode")


@pytest.mark.parametrize(
    ("handler_class", "name", "before", "given", "lost"),
    [
        pytest.param(ImageClassifier, "bf16", (), {}, 0.01, id="bf16"),
        pytest.param(ImageClassifier, "int8", (), {}, 0.05, id="int8"),
        pytest.param(ImageSegmenter, "scaled_decode", (), {"scaled_decode": 0.02}, 0.02, id="as the archive says"),
        pytest.param(ImageClassifier, "compile", ("bf16",), {}, 0.01, id="what comes after bf16"),
        pytest.param(ImageClassifier, "compile", ("bf16",), {"bf16": 0.03}, 0.03, id="as that"),
        pytest.param(
            ImageClassifier, "compile", ("bf16",), {"bf16": 0.3, "compile": 0.1}, 0.1, id="or by its own name"
        ),
        pytest.param(ImageClassifier, "compile", ("fold",), {"compile": 0.1}, None, id="only rounding"),
        pytest.param(ImageClassifier, "fold", (), {}, None, id="fold"),
        pytest.param(ImageClassifier, "onnxruntime", ("fold",), {}, None, id="onnxruntime"),
        pytest.param(Regression, "bf16", (), {}, None, id="no classes"),
        pytest.param(BaseHandler, "bf16", (), {}, None, id="no names of classes"),
    ],
)
def test_what_is_judged_so(
    handler_class: type[BaseHandler], name: str, before: tuple[str, ...], given: dict[str, float], lost: float | None,
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(handler_class, "example", lambda self: b"", raising=False)
    made: Any = Steps(loaded(model_dir, entry, handler_class), model_dir, {}, 2)
    made.done = list(before)

    assert made.classes_lost(name, given) == lost
