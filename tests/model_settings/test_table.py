"""The table of a model's settings says of each what it must, and nothing twice."""

from collections import Counter

import pytest

from docs.generate.model_settings import page
from tests.places import ROOT
from tsctl.daemon.model_settings import ModelSetting
from tsctl.daemon.model_settings.kinds import Boolean
from tsctl.daemon.tables import MODEL_SETTINGS, SETTINGS

each_row = pytest.mark.parametrize("row", MODEL_SETTINGS, ids=lambda row: row.name)


@pytest.mark.parametrize("border", ["name", "yaml", "rest", "flag", "label"])
def test_no_name_means_two_settings(border: str) -> None:
    names = Counter(getattr(row, border) for row in MODEL_SETTINGS if getattr(row, border))

    assert {name: count for name, count in names.items() if count > 1} == {}


@each_row
def test_what_cannot_be_said_everywhere_has_a_reason(row: ModelSetting) -> None:
    everywhere = all((row.yaml, row.rest, row.flag, row.changes))

    assert bool(row.why) is not everywhere
    assert bool(row.rest) or not row.flag
    assert bool(row.flag) or not row.changes


@each_row
def test_help_is_a_sentence_and_so_is_a_reason(row: ModelSetting) -> None:
    assert row.help[0].isupper() or row.help.startswith("`")
    assert row.help.endswith(".")
    assert row.why == "" or row.why.endswith(".")
    assert not row.changes.endswith(".")


@each_row
def test_a_default_is_within_the_limits(row: ModelSetting) -> None:
    daemons = {setting.name for setting in SETTINGS}

    assert row.daemon == "" or row.daemon in daemons
    assert row.daemon == "" or not row.default
    if row.default is not None:
        row.kind.check(row.default)


@each_row
def test_what_is_shown_of_a_default_is_read_as_the_same(row: ModelSetting) -> None:
    if row.default not in (None, ()):
        assert row.kind.read(row.kind.show(row.default)) == row.default
        assert row.written.read(row.written.show(row.default)) == row.default


def test_the_reference_page_is_fresh() -> None:
    written = (ROOT / "docs/model-settings.md").read_text()

    assert written == page(), "run `python -m tests.lab references`"


@each_row
def test_the_reference_page_has_every_name(row: ModelSetting) -> None:
    flags = [row.flag, f"--no-{row.flag[2:]}"] if row.flag and isinstance(row.kind, Boolean) else [row.flag]

    for name in filter(None, [row.yaml, row.rest, *flags]):
        assert f"`{name}`" in page()
