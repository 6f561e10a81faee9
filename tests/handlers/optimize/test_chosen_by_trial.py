"""A set that a trial has chosen is applied as that trial has found, and never delays or fails a load."""

import json
from pathlib import Path

import pytest
from torch import nn

from tests.handlers.device import USUAL
from tests.handlers.optimize.loading import answer, done, loaded
from tsctl.handlers import wire
from tsctl.handlers.optimize import check, folding, inductor
from tsctl.handlers.optimize.checks import outcomes
from tsctl.handlers.optimize.packages import keeping


@pytest.fixture(autouse=True)
def kept(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of outcomes."""
    monkeypatch.setenv(outcomes.VARIABLE, str(model_dir / "trials"))
    monkeypatch.setenv(keeping.VARIABLE, str(model_dir / "compiled"))
    return model_dir / "trials"


def test_it_is_applied_without_being_compared_again(
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = done(loaded(model_dir, entry), "none", "fold")
    monkeypatch.setattr(check, "drift", lambda plain, other: pytest.fail("the drift is known"))

    again = done(loaded(model_dir, entry), "auto", "none", "fold")

    assert again["fold"].applied and again["fold"].drift == first["fold"].drift


def test_a_trial_may_have_chosen_the_plain_model(model_dir: Path, entry: dict[str, str]) -> None:
    handler = loaded(model_dir, entry)

    assert done(handler, "auto", "none") == {}
    assert isinstance(handler.model.bn1, nn.BatchNorm2d)


def test_without_what_the_trial_has_found_the_defaults_are_applied_alone(
    model_dir: Path, entry: dict[str, str]
) -> None:
    handler = loaded(model_dir, entry)

    reports = done(handler, "auto", "compile")

    assert [name for name, report in reports.items() if report.applied] == USUAL
    assert reports["compile"].reason == "no trial of it is kept here"
    assert not isinstance(handler.model, inductor.Compiled)


def test_nothing_is_compiled_for_it(
    model_dir: Path, entry: dict[str, str], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(inductor, "compile_sizes", never)
    monkeypatch.setattr(inductor, "refusal", lambda model, device: "")
    done(loaded(model_dir, entry), "none", "fold")
    [file] = kept.iterdir()  # as if `compile` had been tried, and its code removed since
    wanted = dict.fromkeys(USUAL, False) | {"compile": True}
    facts = json.loads(file.read_text())["facts"] | {"wanted": wanted}
    with outcomes.entry_of(facts) as record:
        record.keep([wire.Optimized(name, True, 0.0, 0.1) for name in wanted])
    handler = loaded(model_dir, entry)
    before = answer(handler)

    reports = done(handler, "auto", "compile")

    assert [name for name, report in reports.items() if report.applied] == USUAL
    assert "its code is not kept compiled here" in reports["compile"].reason
    assert list(answer(handler)) == list(before)


def test_one_that_fails_now_leaves_the_model_without_it(
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(model: nn.Module) -> bool:
        raise RuntimeError("another torch")

    done(loaded(model_dir, entry), "none", "fold", "channels_last")
    monkeypatch.setattr(folding, "fold", fail)
    handler = loaded(model_dir, entry)

    reports = done(handler, "auto", "none", "fold", "channels_last")

    assert (reports["fold"].applied, reports["fold"].reason) == (False, "RuntimeError: another torch")
    assert reports["channels_last"].applied
    assert isinstance(handler.model.bn1, nn.BatchNorm2d)
