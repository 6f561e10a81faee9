"""Files are found by what they hold, refusals have a reason or are defects, and counts stay between their marks."""

from pathlib import Path

import pytest

from tests.environments import Missing
from tests.lab.torchserve import report
from tests.lab.torchserve.__main__ import main
from tests.lab.torchserve.checkout import VARIABLE, checkout, configurations, model_configs
from tests.lab.torchserve.configurations import said
from tests.lab.torchserve.model_configs import judge_file
from tests.lab.torchserve.purposes import REFUSALS, judge_refusal
from tests.lab.torchserve.verdict import Outcome, Row, counts


def test_model_configs_are_known_by_name_or_keys(tmp_path: Path) -> None:
    for name, text in {
        "a/model_config.yaml": "x: 1", "b/llama3-model-config.yaml": "x: 1", "c/rag.yaml": "minWorkers: 1\nhandler: {}",
        "d/values.yaml": "replicas: 2", "e/template.yaml": "{{ broken", "f/list.yml": "- 1",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)

    assert [path.parent.name for path in model_configs(tmp_path)] == ["a", "b", "c"]


def test_configurations_are_known_by_name(tmp_path: Path) -> None:
    for name in ("config.properties", "config_kf.properties", "gradle.properties"):
        (tmp_path / name).touch()

    assert [path.name for path in configurations(tmp_path)] == ["config.properties", "config_kf.properties"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("batchSize: 4", Outcome.WORKS),
        ("parallelType: tp", Outcome.WORKS),
        ("batchSize: many", Outcome.DEFECT),
    ],
)
def test_a_model_config_is_judged_as_a_registration_would(tmp_path: Path, text: str, outcome: Outcome) -> None:
    path = tmp_path / "model-config.yaml"
    path.write_text(text)

    assert judge_file("name", path).outcome is outcome


def test_a_refusal_without_a_reason_is_a_defect() -> None:
    assert judge_refusal("name", "Something went wrong.").outcome is Outcome.DEFECT


def test_each_refusal_has_a_reason_and_a_way_forward() -> None:
    assert all(refusal.reason and refusal.instead for refusal in REFUSALS)


def test_notes_of_a_command_are_no_reason() -> None:
    assert said("note: a\nwarning: b\nerror: c\nhint: d\n") == "error: c hint: d"


def test_a_defect_fails_the_command_and_a_refusal_does_not() -> None:
    works, refused, defect = (Row("x", outcome) for outcome in (Outcome.WORKS, Outcome.REFUSED, Outcome.DEFECT))

    assert not report.failed({"part": [works, refused]})
    assert report.failed({"part": [works], "other": [defect]})


def test_counts_name_only_the_verdicts_that_occur() -> None:
    assert counts([Row("a", Outcome.WORKS), Row("b", Outcome.WORKS), Row("c", Outcome.REFUSED)]) == (
        "3: 2 works, 1 refused by design"
    )


@pytest.mark.parametrize("name", [report.EXAMPLES, report.SUITES])
def test_the_counts_replace_only_the_text_between_the_marks(name: str, tmp_path: Path) -> None:
    begin, end = report.marks(name)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")

    report.write(name, {"start-lines": [Row("a", Outcome.WORKS)]}, "abc", [page])
    report.write(name, {"start-lines": [Row("a", Outcome.WORKS)]}, "abc", [page])

    text = page.read_text()
    assert text.startswith(f"before\n{begin}\n") and text.endswith(f"{end}\nafter\n")
    assert f"make {report.COMMANDS[name]}`" in text
    assert "start-lines: 1: 1 works" in text and "commit abc" in text and "old" not in text


def test_a_page_without_marks_stays_unchanged(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("text")

    with pytest.raises(ValueError, match="has no"):
        report.write(report.EXAMPLES, {}, "abc", [page])
    assert page.read_text() == "text"


@pytest.mark.parametrize("name", [report.EXAMPLES, report.SUITES])
def test_both_pages_have_the_same_counts(name: str) -> None:
    begin, end = report.marks(name)
    texts = [page.read_text().partition(begin)[2].partition(end)[0] for page in report.PAGES]
    assert texts[0] == texts[1] != ""


def test_without_a_checkout_the_command_skips(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert main([]) == 0
    assert capsys.readouterr().out.startswith(f"skipped: {VARIABLE} must name a checkout")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(Missing, match="is none"):
        checkout()
