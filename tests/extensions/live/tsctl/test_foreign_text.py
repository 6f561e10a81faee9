"""Texts of others never reach a terminal with what it would obey: in `tsctl top`, too."""

import pytest

from tests.extensions.live.tsctl import documents
from tests.tsctl.terminal.test_foreign_text import HOSTILE, as_terminal, harmless
from tsctl.extension import Styled
from tsctl.extensions.live.terminal import draw_plain


def test_a_name_in_top_is_one_line_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    tty = as_terminal(monkeypatch)
    draw_plain([[Styled(f"{HOSTILE}\nsecond line"), Styled(HOSTILE, "bold")]])

    assert "owned" in tty.seen and "second" not in tty.seen and harmless(tty.seen)
    assert documents.model(HOSTILE)["name"] == HOSTILE
