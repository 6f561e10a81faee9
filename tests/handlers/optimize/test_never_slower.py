"""An optimisation that is no faster is taken back or named, and one trial is enough."""

import itertools
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

from tests.handlers.optimize.conftest import Races
from tests.handlers.optimize.loading import answer, done, loaded, still
from tsctl.handlers import wire
from tsctl.handlers.builtin import fast_images
from tsctl.handlers.builtin.base import BaseHandler
from tsctl.handlers.optimize import trial
from tsctl.handlers.optimize.apply import is_unsure, optimize, time_later
from tsctl.handlers.optimize.trials import verdicts
from tsctl.handlers.optimize.trials.speed import BUDGET, DEFAULT_BUDGET, Speed

ROOT = Path(__file__).parents[3]


def test_a_default_that_is_no_faster_is_taken_back(
    model_dir: Path, entry: dict[str, str], races: Races, caplog: pytest.LogCaptureFixture
) -> None:
    handler = loaded(model_dir, entry)
    before = answer(handler)
    races.gain = 0.5
    caplog.clear()

    with caplog.at_level(logging.WARNING):
        reports = done(handler, batch_size=3)

    assert not any(report.applied for report in reports.values())
    assert all(report.speed == (3, 0.25, 0.5) for report in reports.values())
    sentence = r"it is no gain here: a batch of 3 takes 500 ms with it, 250 ms without it, on \d+ threads? of .*\)"
    assert re.fullmatch(sentence, reports["fold"].reason)
    assert isinstance(handler.model.bn1, nn.BatchNorm2d)
    assert not handler.model.stem.weight.is_contiguous(memory_format=torch.channels_last)
    assert "image_processing" not in vars(handler)
    assert answer(handler) == before
    assert caplog.messages == []


def test_one_that_was_asked_for_and_is_no_faster_is_kept_and_named(
    model_dir: Path, entry: dict[str, str], races: Races, caplog: pytest.LogCaptureFixture
) -> None:
    handler = loaded(model_dir, entry)
    races.gain = 0.5
    caplog.clear()

    with caplog.at_level(logging.WARNING):
        report = done(handler, "none", "fold")["fold"]

    assert report.applied
    assert report.warning.startswith("it is no gain here: a batch of 2 takes 500 ms with it")
    assert caplog.messages == [f"the optimisation fold was asked for: {report.warning}"]
    assert isinstance(handler.model.bn1, nn.Identity)


@pytest.mark.parametrize(
    ("seconds", "timed"),
    [
        pytest.param(0.1, ["fast_images", "fold", "channels_last"], id="a batch of two takes 0.1 s"),
        pytest.param(0.6, ["fast_images"], id="a batch of two takes 0.6 s"),
    ],
)
def test_the_first_answer_of_a_slow_model_does_not_wait_for_the_times_of_defaults(
    seconds: float, timed: list[str], model_dir: Path, entry: dict[str, str], races: Races
) -> None:
    times = itertools.count(0.0, seconds)
    reports = optimize(loaded(model_dir, entry), None, model_dir, {}, 2, clock=lambda: next(times))

    assert all(report.applied for report in reports)
    assert [report.name for report in reports if report.speed is not None] == timed
    assert set(races.budgets) == {DEFAULT_BUDGET}


def test_one_that_was_asked_for_is_timed_however_slow_the_model(
    model_dir: Path, entry: dict[str, str], races: Races
) -> None:
    times = itertools.count(0.0, 0.6)
    reports = optimize(loaded(model_dir, entry), ("none", "fold"), model_dir, {}, 2, clock=lambda: next(times))

    assert [report.speed is not None for report in reports] == [True]
    assert races.budgets == [BUDGET]


@pytest.mark.parametrize("gain", [2.0, 0.5])
def test_a_trial_is_not_repeated_for_the_same_archive_and_way_to_run_it(
    gain: float, model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    races.gain = gain
    first_handler, second_handler = loaded(model_dir, entry), loaded(model_dir, entry)
    first, answered = done(first_handler, "none", "fold", "channels_last"), answer(first_handler)
    monkeypatch.setattr(trial, "drift", lambda plain, other: pytest.fail("the drift is known"))
    tried = races.number

    second = done(second_handler, "none", "fold", "channels_last")

    assert races.number == tried == 2
    assert all(each.known for each in second.values())
    assert {name: msgspec.structs.replace(each, seconds=0, known=False) for name, each in second.items()} == {
        name: msgspec.structs.replace(each, seconds=0) for name, each in first.items()
    }
    assert answer(second_handler) == answered


def test_on_a_machine_too_busy_to_tell_all_are_kept_and_tried_again_at_the_next_load(
    model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    races.gain, races.noise = 0.9, 1.5

    first = done(loaded(model_dir, entry))
    races.noise = 1.0
    monkeypatch.setattr(trial, "drift", lambda plain, other: pytest.fail("the drift is known"))
    second = done(loaded(model_dir, entry))

    assert all(report.applied and not report.warning for report in first.values())
    assert not any(report.applied for report in second.values())


def test_where_the_second_trial_cannot_tell_either_the_third_load_makes_none(
    model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    races.gain, races.noise = 0.9, 1.5

    raced = []
    for _ in range(3):
        assert all(report.applied for report in done(loaded(model_dir, entry)).values())
        raced.append(races.number)

    assert raced == [3, 6, 6]


def test_another_batch_size_number_of_threads_or_choice_is_another_trial(
    model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    ways: list[tuple[tuple[str, ...], int, int]] = [(("none", "fold"), 2, 1), (("none", "fold"), 3, 1)]
    ways += [(("none", "fold"), 2, 4), (("none", "channels_last"), 2, 1)]
    for asked, batch_size, threads in ways * 2:
        handler = loaded(model_dir, entry)
        optimize(handler, asked, model_dir, {}, batch_size, threads=threads, clock=still)

    assert races.number == len(ways)


def later(
    handler: BaseHandler, model_dir: Path, called: list[str], asked: tuple[str, ...] | None = None
) -> list[wire.Optimized]:
    return optimize(handler, asked, model_dir, {}, 2, threads=1, put_off=lambda: called.append("put off"), clock=still)


def test_the_times_of_defaults_may_be_put_off_until_after_the_first_answer(
    model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    called: list[str] = []

    first = later(loaded(model_dir, entry), model_dir, called)

    assert all(report.applied and report.drift is not None and report.speed is None for report in first)
    assert (races.number, called) == (0, ["put off"])
    monkeypatch.setattr(trial, "drift", lambda plain, other: pytest.fail("the drift is known"))
    assert [report.name for report in later(loaded(model_dir, entry), model_dir, called) if report.applied]
    assert (races.number, called) == (0, ["put off"] * 2)  # they are still to be timed


@pytest.mark.parametrize(
    ("gain", "kept", "anew"),
    [
        pytest.param(2.0, True, False, id="a gain"),
        pytest.param(1.0, False, False, id="neither gain nor loss: left out at the next load"),
        pytest.param(0.5, False, True, id="a loss"),
    ],
)
def test_what_was_put_off_is_timed_later_and_known_from_then_on(
    gain: float, kept: bool, anew: bool, model_dir: Path, entry: dict[str, str], races: Races,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    races.gain = gain
    called: list[str] = []
    handler = loaded(model_dir, entry)
    later(handler, model_dir, called)

    assert time_later(handler, None, model_dir, {}, 2, 1) is anew
    assert races.number == 3

    known = later(loaded(model_dir, entry), model_dir, called)
    assert [report.applied for report in known] == [kept] * 3
    assert all(report.speed is not None for report in known)
    assert (races.number, called) == (3, ["put off"])


def test_where_other_workers_have_no_template_they_time_what_was_put_off(
    model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    later(loaded(model_dir, entry), model_dir, [])

    reports = optimize(loaded(model_dir, entry), None, model_dir, {}, 2, threads=1, clock=still)

    assert races.number == 3
    assert all(report.speed is not None for report in reports)


def test_on_a_busy_machine_they_are_timed_again_after_the_next_start(
    model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    races.gain, races.noise = 0.9, 1.5
    called: list[str] = []
    handler = loaded(model_dir, entry)
    later(handler, model_dir, called)

    assert not time_later(handler, None, model_dir, {}, 2, 1)
    later(loaded(model_dir, entry), model_dir, called)

    assert called == ["put off"] * 2


def test_a_clear_loss_counts_although_another_default_is_unsure_and_both_are_timed_once_more(
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    speeds = itertools.cycle([Speed(1.0, 1.0, 1.5), Speed(0.5, 1.0), Speed(1.0, 0.5)])  # unsure, a loss, a gain
    monkeypatch.setattr(trial, "race", lambda *arguments: next(speeds))
    called: list[str] = []
    later(loaded(model_dir, entry), model_dir, called)

    assert time_later(loaded(model_dir, entry), None, model_dir, {}, 2, 1)
    known = later(loaded(model_dir, entry), model_dir, called)

    assert [(report.name, report.applied) for report in known] == [
        ("fast_images", True), ("fold", False), ("channels_last", True),
    ]  # fmt: skip
    assert called == ["put off"] * 2
    assert not time_later(loaded(model_dir, entry), None, model_dir, {}, 2, 1)  # no worker has it any more
    later(loaded(model_dir, entry), model_dir, called)
    assert called == ["put off"] * 2


def test_what_is_asked_for_and_unsure_holds_up_no_second_start_where_a_template_times_it_later(
    model_dir: Path, entry: dict[str, str], races: Races, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(verdicts.VARIABLE, str(tmp_path / "trials"))
    races.gain, races.noise = 0.9, 1.5
    asked, called = ("none", "fold"), list[str]()
    assert not is_unsure(loaded(model_dir, entry), asked, model_dir, {}, 2, 1)
    later(loaded(model_dir, entry), model_dir, called, asked)
    assert (races.number, called) == (1, ["put off"])
    assert is_unsure(loaded(model_dir, entry), asked, model_dir, {}, 2, 1)

    (second,) = later(loaded(model_dir, entry), model_dir, called, asked)
    assert (races.number, called) == (1, ["put off"] * 2)
    assert second.applied and second.known and not second.warning

    races.noise = 1.0
    assert not time_later(loaded(model_dir, entry), asked, model_dir, {}, 2, 1)  # it was asked for, and stays
    assert not is_unsure(loaded(model_dir, entry), asked, model_dir, {}, 2, 1)
    (third,) = later(loaded(model_dir, entry), model_dir, called, asked)
    assert (races.number, called) == (2, ["put off"] * 2)
    assert third.applied and third.warning.startswith("it is no gain here")


def test_what_is_asked_for_is_timed_before_the_model_is_served(
    model_dir: Path, entry: dict[str, str], races: Races
) -> None:
    called: list[str] = []

    later(loaded(model_dir, entry), model_dir, called, ("none", "fold"))

    assert (races.number, called) == (1, [])


def test_a_default_that_drifts_is_taken_back_although_it_is_not_timed(
    model_dir: Path, entry: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = loaded(model_dir, entry)
    before = answer(handler)
    monkeypatch.setattr(trial, "drift", lambda plain, other: 1.0)
    monkeypatch.setattr(fast_images, "pixel_drift", lambda usual, fast: 1.0)

    reports = later(handler, model_dir, [])

    assert not any(report.applied for report in reports)
    assert answer(handler) == before


# In a process of its own, which has run nothing in parallel, as a template has not: a fork loses the threads of torch.
TEMPLATE = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from torch import nn
from tsctl.handlers.optimize import trial
from tsctl.handlers.optimize.apply import optimize
from tsctl.handlers.process.forking import start_apart
from tests.handlers.optimize.conftest import Races
from tests.handlers.optimize.loading import loaded, still

races = trial.race = Races()
handler, seen = loaded(Path(sys.argv[1]), json.loads(sys.argv[2])), []

def apart(work):
    seen.append(isinstance(handler.model.bn1, nn.BatchNorm2d))
    result = start_apart(2, (), work)()
    seen.append(isinstance(handler.model.bn1, nn.BatchNorm2d))
    return lambda: result

reports = optimize(handler, None, Path(sys.argv[1]), {}, 2, threads=2, apart=apart, clock=still)
told = [[report.applied, report.speed] for report in reports]
print(json.dumps([seen, races.number, told, isinstance(handler.model.bn1, nn.Identity)]))
"""


def test_in_a_template_the_trial_leaves_the_process_untouched_until_its_outcome_is_known(
    model_dir: Path, entry: dict[str, str]
) -> None:
    program = [sys.executable, "-c", TEMPLATE, str(model_dir), json.dumps(entry)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT, timeout=60)
    seen, raced, told, folded = json.loads(ended.stdout.splitlines()[-1])

    assert seen == [True, True]
    assert raced == 0  # in that process
    assert told and all(report == [True, [2, 1.0, 0.5]] for report in told)
    assert folded


def test_a_model_whose_trial_dies_is_served_as_it_is(
    model_dir: Path, entry: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    handler = loaded(model_dir, entry)
    before = answer(handler)

    with caplog.at_level(logging.INFO):
        reports = optimize(handler, None, model_dir, {}, 2, apart=_dies)

    text = "the process that tried them died (signal 6)"
    assert [report.reason for report in reports] == [text] * 3
    assert f"the model is served without optimisations: {text}" in caplog.messages
    assert answer(handler) == before


def _dies(work: Callable[[], bytes]) -> Callable[[], bytes]:
    raise ChildProcessError("signal 6")
