"""Optimisations are applied, checked against the plain model, and taken back where they go too far."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.handlers.device import DEVICE, GPU_ID, ROUNDING, USUAL
from tests.handlers.optimize.loading import answer, done, loaded
from tests.handlers.optimize.nets import put_archive
from tsctl.handlers.builtin import fast_images
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.vision import VisionHandler, example_image
from tsctl.handlers.optimize import apply, bfloat16, check, folding
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.optimize.checks.drift import TOLERANCES
from tsctl.handlers.requests.preparation import IMAGENET
from tsctl.handlers.sdk.errors import HandlerError

TOLERATED = "1.0e-03" if GPU_ID is None else "1.0e-02"  # with TF32


class Mine(ImageClassifier):
    """A user's own."""


class Broken:
    """A user's own, without anything of ours."""

    @property
    def device(self) -> str:
        raise RuntimeError("no device yet")


class Changing(ImageClassifier):
    """A user's own, that does something to the model after it is loaded."""

    def initialize(self, context: Any) -> None:
        super().initialize(context)
        with torch.no_grad():
            self.model.head.bias += 1.0


def test_the_image_classifier_is_optimised_by_default_and_answers_the_same(
    model_dir: Path, entry: dict[str, str]
) -> None:
    handler = loaded(model_dir, entry)
    before = answer(handler)

    reports = done(handler)

    assert list(reports) == USUAL
    assert all(report.applied for report in reports.values())
    assert {name: report.reason for name, report in reports.items() if report.reason} == {
        "fold": "2 of 2 batch normalisations"
    }
    assert 0 < (reports["fast_images"].drift or 0) <= 1.001 / 255
    assert 0 < (reports["fold"].drift or 0) < ROUNDING
    assert isinstance(handler.model.bn1, nn.Identity)
    assert handler.model.stem.weight.is_contiguous(memory_format=torch.channels_last)
    assert list(answer(handler)) == list(before)
    assert answer(handler) == pytest.approx(before, abs=1e-3)


def test_a_subclass_that_changes_none_of_it_has_the_same_by_default(model_dir: Path, entry: dict[str, str]) -> None:
    handler = loaded(model_dir, entry, Mine)

    assert list(done(handler)) == USUAL
    assert isinstance(handler.model.bn1, nn.Identity)


def test_the_model_of_a_subclass_that_loads_it_stays_as_it_is_unless_asked(
    model_dir: Path, entry: dict[str, str]
) -> None:
    handler = loaded(model_dir, entry, Changing)
    model = handler.model

    assert list(done(handler)) == ["fast_images"]
    assert handler.model is model and handler.plain is None
    assert [report.applied for report in done(handler, "fold").values()] == [True, True]
    assert isinstance(handler.model.bn1, nn.Identity)


@pytest.mark.parametrize("handler_class", [ImageClassifier, Changing])
def test_an_explanation_sees_the_model_as_it_was_loaded(
    handler_class: type[BaseHandler], model_dir: Path, entry: dict[str, str]
) -> None:
    handler = loaded(model_dir, entry, handler_class)
    expected = {name: tensor.clone() for name, tensor in handler.model.state_dict().items()}
    done(handler, "fold", "bf16") if not bfloat16.refusal(handler.device) else done(handler, "fold")
    optimised, seen = handler.model, []

    def get_insights(tensor_data: Any, raw_data: Any, target: Any = 0) -> list[str]:
        seen.append(handler.model)
        return ["explained"]

    handler.get_insights = get_insights  # type: ignore[method-assign]
    assert handler.context is not None
    handler.context.begin_batch(["r"], [{"explain": "True"}])
    answers = handler.handle([{"body": example_image()}], handler.context)

    assert answers == ["explained"]
    assert seen[0] is not optimised
    assert seen[0].state_dict().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in seen[0].state_dict().items())
    assert handler.model is optimised


def spoil(model: nn.Module, really: Callable[[nn.Module], int] = folding.fold) -> int:
    """Fold wrongly: the answers change by far more than rounding."""
    really(model)
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)
    return 1


def test_what_drifts_too_far_by_default_is_taken_back_with_a_warning(
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    handler = loaded(model_dir, entry)
    before = answer(handler)
    monkeypatch.setattr(folding, "fold", spoil)

    caplog.clear()
    with caplog.at_level(logging.WARNING):
        reports = done(handler)

    fold = reports["fold"]
    assert not fold.applied
    assert (fold.drift or 0) > 1e-2
    assert caplog.messages == [
        f"the model is served without the optimisation fold: its drift is {fold.drift:.1e},"
        f" and {TOLERATED} is tolerated"
    ]
    assert reports["channels_last"].applied
    assert isinstance(handler.model.bn1, nn.BatchNorm2d)
    assert answer(handler) == pytest.approx(before, abs=1e-3)


def test_what_was_applied_before_stays_when_a_later_one_is_taken_back(
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = loaded(model_dir, entry, optimizeTolerance={"channels_last": 0})
    monkeypatch.setattr(check, "drift", lambda plain, other: 1e-9)

    reports = done(handler)

    assert [report.applied for report in reports.values()][:3] == [True, True, False]
    assert isinstance(handler.model.bn1, nn.Identity)
    assert not handler.model.stem.weight.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.skipif(bool(bfloat16.refusal(DEVICE)), reason="the device has no fast bfloat16")
def test_the_tolerance_may_be_narrowed(model_dir: Path, entry: dict[str, str]) -> None:
    class Regression(ImageClassifier):  # whose answers are no classes: these are judged by other numbers
        chooses_class = False

    wide = loaded(model_dir, entry, Regression)
    narrow = loaded(model_dir, entry, Regression, optimizeTolerance={"bf16": 1e-9})

    drifted = done(wide, "bf16")["bf16"].drift
    assert drifted is not None
    assert 1e-6 < drifted < 5e-2
    assert wide.model.narrow.stem.weight.dtype == torch.bfloat16
    assert wide.inference(torch.zeros(1, 3, 224, 224)).dtype == torch.float32
    with pytest.raises(HandlerError, match=r"its drift is .*, and 1\.0e-09 is tolerated"):
        done(narrow, "bf16")


@pytest.mark.parametrize("tolerance", [3, {"bf16": "much"}, {"speed": 1}, {"bf16": -1}, {"bf16": True}])
def test_a_wrong_tolerance_is_a_sentence(tolerance: object, model_dir: Path, entry: dict[str, str]) -> None:
    with pytest.raises(HandlerError, match=r"^model-config.yaml: `optimizeTolerance` is .*; expected a map"):
        done(loaded(model_dir, entry, optimizeTolerance=tolerance))


def test_without_assertions_too_the_plain_model_is_what_is_compared_with(
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = loaded(model_dir, entry)
    monkeypatch.setattr(fast_images, "use", lambda handler: False)  # so that what spoils the model is the first
    monkeypatch.setattr(folding, "fold", spoil)
    module: dict[str, Any] = {"__name__": "without_assertions"}  # as by PYTHONOPTIMIZE

    exec(compile(Path(apply.__file__).read_text(), apply.__file__, "exec", dont_inherit=True, optimize=1), module)

    with pytest.raises(HandlerError, match="`optimize: fold` cannot be done: its drift is"):
        module["optimize"](handler, ["fold"], model_dir, {}, 2)


PLAIN = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 6)
        def forward(self, images):
            return self.linear(images.mean(dim=(2, 3)))
"""


def test_where_there_is_nothing_to_do_it_says_so_and_even_by_name_that_is_no_failure(model_dir: Path) -> None:
    reports = done(loaded(model_dir, put_archive(model_dir, PLAIN)), "fold")

    assert {name: report.reason for name, report in reports.items() if not report.applied} == {
        "fold": "no convolution is followed by a batch normalisation of its own",
        "channels_last": "the model has no two-dimensional convolution",
    }


def test_a_model_that_fails_on_the_sample_is_served_as_it_is(model_dir: Path) -> None:
    source = PLAIN.replace("mean(dim=(2, 3))", "reshape(-1, 784)")
    handler = loaded(model_dir, put_archive(model_dir, source))

    reports = done(handler)

    assert not any(report.applied for report in reports.values())
    assert reports["fold"].reason.startswith("the plain model fails on the sample: RuntimeError: ")


@pytest.mark.parametrize(
    ("handler_class", "model", "reason"),
    [
        pytest.param(BaseHandler, nn.Linear(2, 2), "there is no sample to check on: name a file", id="no sample"),
        pytest.param(BaseHandler, print, "the model is a builtin_function_or_method, and only a torch", id="no module"),
        pytest.param(object, None, "the handler is not a subclass of BaseHandler", id="no handler of ours"),
        pytest.param(Broken, None, "the handler is not a subclass of BaseHandler", id="a `device` that raises"),
    ],
)
def test_who_cannot_be_optimised_is_told_why(handler_class: type, model: Any, reason: str, tmp_path: Path) -> None:
    handler = handler_class()
    if model is not None:
        handler.model = model

    with pytest.raises(HandlerError, match=f"^`optimize: bf16, compile` cannot be done: {reason}"):
        optimize(handler, ("bf16", "compile"), tmp_path, {}, 1)


def test_the_warm_up_sample_is_what_it_is_checked_on(model_dir: Path, entry: dict[str, str]) -> None:
    (model_dir / "numbers.json").write_text(json.dumps([[[1.0] * 32] * 32] * 3))
    config = {"warmup": {"file": "numbers.json", "contentType": "application/json"}}
    handler = loaded(model_dir, entry, Mine, **config)
    shapes = []
    handler.model.register_forward_hook(lambda module, args, output: shapes.append(tuple(args[0].shape)))

    done(handler, "none", "channels_last")

    assert set(shapes) == {(2, 3, 32, 32)}


def test_scaled_decode_is_tried_on_a_larger_image_and_kept_for_large_ones(
    model_dir: Path, entry: dict[str, str]
) -> None:
    handler = loaded(model_dir, entry)

    report = done(handler, "scaled_decode")["scaled_decode"]

    assert report.applied and 0 < (report.drift or 0) <= TOLERANCES["scaled_decode"]
    assert isinstance(handler, VisionHandler) and handler.least_side == IMAGENET.least_side


def test_scaled_decode_is_refused_for_a_filter_that_it_changes_too_much(model_dir: Path, entry: dict[str, str]) -> None:
    with pytest.raises(HandlerError, match="images are resized by `box`, which smaller ones change too much"):
        done(loaded(model_dir, entry, interpolation="box"), "scaled_decode")


class Reading(ImageClassifier):
    """Reads images in its own way."""

    def decode_row(self, row: Any) -> torch.Tensor:
        return super().decode_row(row)


@pytest.mark.parametrize(
    ("handler_class", "name", "why"),
    [
        (Reading, "scaled_decode", "^`optimize: scaled_decode` cannot be done: the handler does not prepare"),
        (ImageClassifier, "scaled_decode", r"its drift is .*, and 1\.0e-06 is tolerated"),
        (
            ImageClassifier,
            "fold",
            rf"^`optimize: fold` cannot be done: its drift is \d\.\de-\d\d, and {TOLERATED} is tolerated$",
        ),
        (ImageClassifier, "bf16", r"^`optimize: bf16` cannot be done: the processor \(Old\) has no fast path$"),
    ],
)
def test_what_was_asked_for_and_cannot_be_done_fails_the_load(
    handler_class: type[BaseHandler],
    name: str,
    why: str,
    model_dir: Path,
    entry: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(folding, "fold", spoil)
    monkeypatch.setitem(TOLERANCES, "scaled_decode", 1e-6)
    monkeypatch.setattr(bfloat16, "refusal", lambda device: "the processor (Old) has no fast path")

    with pytest.raises(HandlerError, match=why):
        done(loaded(model_dir, entry, handler_class), name)
