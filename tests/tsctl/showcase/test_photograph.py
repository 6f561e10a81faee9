"""The photograph at the end of the demo: drawn where there are colours, and left out where its packages are missing."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from rich.console import Console

from tsctl import render
from tsctl.client import DaemonClient
from tsctl.showcase import photograph
from tsctl.showcase.facts import ClassifiedPhotograph, ShowcaseFacts
from tsctl.showcase.stage import Stage


def drawn(monkeypatch: pytest.MonkeyPatch, folder: Path, **options: Any) -> str:
    """Return what is printed for a photograph whose upper half is red and whose lower half is blue."""
    image = Image.new("RGB", (88, 60), (255, 0, 0))
    image.paste((0, 0, 255), (0, 30, 88, 60))
    image.save(folder / "halves.png")
    console = Console(file=io.StringIO(), width=100, _environ={}, **options)
    monkeypatch.setattr(render, "out", console)
    photograph.draw_photograph(ClassifiedPhotograph(folder / "halves.png", (("palace", 0.5), ("bell cote", 0.25))))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_two_rows_of_pixels_are_a_line_of_half_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = drawn(monkeypatch, tmp_path, force_terminal=True, color_system="truecolor").splitlines()

    assert len(lines) == 15
    assert [line.count("▀") for line in lines] == [44] * 15
    assert "38;2;255;0;0;48;2;255;0;0m" in lines[0] and "38;2;0;0;255;48;2;0;0;255m" in lines[-1]
    assert "0.50 ██████       palace" in lines[3] and "0.25 ███          bell cote" in lines[4]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"force_terminal": False}, id="a pipe"),
        pytest.param({"force_terminal": True, "no_color": True}, id="NO_COLOR"),
        pytest.param({"force_terminal": True, "color_system": None}, id="a terminal without colours"),
    ],
)
def test_nothing_is_drawn_without_colours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: dict[str, Any]
) -> None:
    assert drawn(monkeypatch, tmp_path, **options) == ""


def test_without_its_packages_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photograph, "find_spec", lambda name: None)
    facts = ShowcaseFacts(bytes(64), "", 32)

    photograph.classify(Stage(DaemonClient(Path("nowhere")), Path(), facts, b"", Path(), lambda: 0.0))

    assert facts.lacks_photograph
    assert facts.photograph is None
