"""What a handler opens beside itself, found without running it."""

from pathlib import Path

import pytest

from tsctl.daemon.targets import folders_named, opened_by

FILES = (
    "labels.txt",
    "vocab/en/words.txt",
    "vocab/de/words.txt",
    "samples/a.jpg",
    "samples/.hidden/x",
    "data/huge.bin",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / name).write_text("x")
    (tmp_path / "shared.txt").write_text("x")
    return tmp_path / "model"


def source(folder: Path, line: str) -> Path:
    handler = folder / "handler.py"
    handler.write_text(f"import os, torch\nfrom pathlib import Path\nhere = Path(__file__).parent\n{line}\n")
    return handler


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param('open("labels.txt")', ["labels.txt"], id="a file"),
        pytest.param('text = (here / "labels.txt").read_text()', ["labels.txt"], id="joined to the handler's folder"),
        pytest.param('name = here.with_name("labels.txt")', ["labels.txt"], id="by its name"),
        pytest.param('open(str(here) + "/labels.txt")', ["labels.txt"], id="joined by +"),
        pytest.param('open(f"{here}/labels.txt")', ["labels.txt"], id="in an f-string"),
        pytest.param('LABELS = "labels.txt"', ["labels.txt"], id="a constant"),
        pytest.param('open(here / "vocab" / "en" / "words.txt")', ["vocab/en/words.txt"], id="in its folder"),
        pytest.param(
            'open(os.path.join(os.path.dirname(__file__), "vocab", "en", "words.txt"))', ["vocab/en/words.txt"],
            id="joined by os.path"),
        pytest.param(
            'language = "en"; open(here / "vocab" / language / "words.txt")',
            ["vocab/de/words.txt", "vocab/en/words.txt"], id="of a name that is computed, the folder"),
        pytest.param('sorted(here.glob("samples/*.jpg"))', ["samples/a.jpg"], id="a pattern's folder, nothing hidden"),
        pytest.param('os.listdir("samples")', ["samples/a.jpg"], id="a folder that is listed"),
        pytest.param('value = row["data"] or row.get("data")', [], id="a word that is no path"),
        pytest.param('open("nothing.txt"); open("/etc/hostname")', [], id="not here, or of the machine"),
        pytest.param('import sys; sys.path.insert(0, os.path.join(str(here), ".."))', [], id="nothing above"),
        pytest.param('os.listdir(".")', [], id="not the whole folder"),
    ],
)  # fmt: skip
def test_what_a_handler_opens(folder: Path, line: str, expected: list[str]) -> None:
    found = opened_by([source(folder, line)], folder)

    assert sorted(found.files) == expected
    assert all(path == folder / name for name, path in found.files.items())
    assert not found.outside


@pytest.mark.parametrize("line", ['open("../shared.txt")', 'open(here / ".." / "shared.txt")'])
def test_what_is_outside_of_the_folder_is_named(folder: Path, line: str) -> None:
    handler = source(folder, line)

    found = opened_by([handler], folder)

    assert (found.files, found.outside) == ({}, {"../shared.txt": handler})


@pytest.mark.parametrize(
    ("warmup", "expected"),
    [
        ("samples", ["samples/a.jpg"]),
        ("labels.txt  # a text", ["labels.txt"]),
        ("[labels.txt, samples/a.jpg]", ["labels.txt", "samples/a.jpg"]),
        ("\n  - labels.txt\n  - 'samples/a.jpg'", ["labels.txt", "samples/a.jpg"]),
        ("nothing", []),
    ],
)
def test_the_samples_of_the_configuration_are_opened_too(folder: Path, warmup: str, expected: list[str]) -> None:
    config = folder / "model-config.yaml"
    config.write_text(f"batchSize: 4\nwarmup: {warmup}\nother: data\n")

    assert sorted(opened_by([], folder, config).files) == expected


def test_a_folder_keeps_its_name_where_somebody_says_it(folder: Path) -> None:
    handler = source(folder, 'open(here / "vocab" / "en" / "words.txt"); row.get("data")')
    config = folder / "model-config.yaml"
    config.write_text("warmup: samples\n")
    folders = [folder / name for name in ("vocab", "samples", "data")]

    assert folders_named([handler], config, folders) == {"vocab", "samples"}
    assert folders_named([], None, folders) == set()
