"""The view of `tsctl tune`: its results as a table, and a setting of it applied."""

from pathlib import Path
from typing import Any

import pytest

from tests.extensions.console.browser.conftest import Console
from tests.extensions.console.browser.results import RESULT
from tsctl.tuning.saved_results import save


@pytest.fixture
def measured(console: Console) -> None:
    """A daemon whose model `labels` was measured."""
    save(Path(console.served.status["stateDir"]), RESULT)


def test_without_a_result_the_page_names_the_command(page: Any, console: Console) -> None:
    page.get_by_role("link", name="Tune").click()

    page.get_by_text("tsctl tune finder --clients 32").wait_for()


def test_the_settings_are_a_table_with_the_recommended_one_chosen(page: Any, console: Console, measured: None) -> None:
    page.goto(f"{console.url}/#/tune")
    page.locator(".points").wait_for()

    assert page.locator(".points tbody tr").count() == 4
    assert page.get_by_role("radio", checked=True).evaluate("each => each.value") == "1"
    assert page.locator(".points tr.chosen .tag").all_text_contents() == ["recommended"]
    page.get_by_text(RESULT["verdict"]).wait_for()
    page.get_by_text("tsctl set labels/1.0 --batch-size 8 --max-delay 20 --batching auto").wait_for()


def test_a_setting_is_applied_after_its_changes_were_shown(page: Any, console: Console, measured: None) -> None:
    page.goto(f"{console.url}/#/tune/labels/1.0")
    page.get_by_role("radio").nth(2).check()
    page.get_by_text("tsctl set labels/1.0 --batch-size 16 --max-delay 10 --batching auto").wait_for()
    page.get_by_text("tsctl scale labels/1.0 2").wait_for()
    assert page.locator(".changes").inner_text() == "batch size: 32 → 16\nmaximum delay, ms: 100 → 10"
    assert console.served.describe("labels")["batchSize"] == 32

    page.get_by_role("button", name="Apply").click()

    page.get_by_text("Applied.").wait_for()
    described = console.served.describe("labels")
    assert (described["batchSize"], described["maxBatchDelay"]) == (16, 10)


def test_settings_are_chosen_by_the_keyboard(page: Any, console: Console, measured: None) -> None:
    page.goto(f"{console.url}/#/tune")
    page.get_by_role("radio", checked=True).focus()

    page.keyboard.press("ArrowDown")
    page.get_by_text("--batch-size 16 --max-delay 10 --batching auto").wait_for()
    page.keyboard.press("ArrowDown")

    page.get_by_text("--batch-size 32 --max-delay 20 --batching greedy").wait_for()


def test_the_table_fits_a_phone(page: Any, console: Console, measured: None) -> None:
    page.set_viewport_size({"width": 375, "height": 760})
    page.goto(f"{console.url}/#/tune")
    page.locator(".points").wait_for()

    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
