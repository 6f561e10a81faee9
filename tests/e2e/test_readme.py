"""README is short, and names only what exists. Its commands are run by test_documented.py."""

import re
from pathlib import Path

import pytest

from tsctl.cli import all_verbs

pytestmark = pytest.mark.thin

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = (README, *(file.read_text() for file in (ROOT / "docs").rglob("*.md")))
VERBS = {verb for page in PAGES for verb in re.findall(r"(?:`|^)tsctl ([a-z]+(?:-[a-z]+)*)", page, re.MULTILINE)}


def test_it_has_at_most_5000_characters() -> None:
    assert len(README) <= 5000


def row(page: str, heading: str, name: str, under: str = "") -> list[str]:
    """Return the cells of a row, after its name: of the table under a heading, and there under a line."""
    section = page.split(f"\n## {heading}\n")[1]
    section = section.partition(f"\n{under}\n")[2] if under else section
    rows = (
        [cell.strip(" *") for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"
    )
    return next(cells[1:] for cells in rows if cells[0] == name)


def number(text: str) -> float:
    return float(re.findall(r"[\d.]+", text)[0])


def test_its_numbers_are_those_of_the_pages_that_were_measured() -> None:
    bench, batching = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("benchmarks", "batching"))
    constant = number(row(bench, "Constant answer, 100 bytes sent", "torchserve", under="8 connections:")[-1])
    resnet = row(bench, "ResNet-18, JPEGs", "torchserve")[-2]
    # A processor without bfloat16 has no row with it.
    fastest = next(each for each in ("tsctl+bf16+compile", "tsctl+compile") if f"**{each}**" in bench)
    fast, names = row(bench, "ResNet-18, JPEGs", fastest)[-1], ",".join(fastest.split("+")[1:])
    killed = [row(bench, "The only worker killed (-9) under 8 clients", name)[-1] for name in ("tsctl", "torchserve")]
    clients = row(batching, "Compared", "8 clients")

    told = " ".join(README.split())
    assert f"{constant:.1f} × TorchServe's requests a second for a constant answer" in told
    assert f"{number(resnet):.1f} × for ResNet-18 on a CPU, {number(fast):.1f} × with `--optimize {names}`" in told
    assert f"serving again {killed[0]} after" in told
    assert f"TorchServe takes {number(killed[1]):.1f} s" in told
    assert f"eight clients get {number(clients[-1]):.0f} answers" in told
    assert f"TorchServe's rule gives {number(clients[2]):.0f}" in told


def test_the_two_commands_that_need_nothing_are_there() -> None:
    assert "`make demo`" in README
    assert "`make test`" in README


def test_its_picture_is_whole_and_loads_nothing_from_another_host() -> None:
    picture = (ROOT / "docs" / "pictures" / "terminal.svg").read_text()

    assert "](docs/pictures/terminal.svg)" in README
    for shown in ("tsctl&#160;serve", "another&#160;terminal", "tsctl&#160;bench", "Batches&#160;by&#160;size"):
        assert shown in picture
    assert "url(" not in picture.replace("url(#", "")


def test_every_verb_that_readme_and_docs_name_exists() -> None:
    assert len(VERBS) > 30
    assert VERBS - all_verbs().keys() == set()
